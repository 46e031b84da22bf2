// File descriptors that close themselves. Those made here stay behind when a program is executed, and lie above the numbers that
// a new process gives to its own.
#pragma once

#include <string>
#include <utility>

namespace hlat::sandbox {

class Descriptor {
 public:
  static constexpr int kLowest = 16;

  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }
  void close();

 private:
  int number_ = -1;
};

struct Pipe {
  Descriptor read_end, write_end;
};

Pipe make_pipe();                                         // reading does not wait
Descriptor open_null();                                   // /dev/null, to read
Descriptor make_memory_file(const std::string& content);  // at its beginning

// What can be read now, appended until `text` has `limit` bytes. False once there is more than that.
bool read_available(const Descriptor& from, std::string& text, size_t limit);

}  // namespace hlat::sandbox
