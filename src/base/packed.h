// Values, texts and lists as bytes, for other ranks: they run the same program on the same kind of machine, so each lies there as it does
// in memory. Counts are 64 bits, before what they count.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace hlat {

class Packer {
 public:
  template <class T>
  void add(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T> || (std::is_class_v<T> && std::is_trivially_copyable_v<T>));
    static_assert(!std::is_convertible_v<T, std::string_view>);
    add_bytes(&value, sizeof(T));
  }
  void add(std::string_view text) {
    add(uint64_t{text.size()});
    bytes_ += text;
  }
  void add(const std::string& text) { add(std::string_view(text)); }
  template <class T>
  void add(const std::vector<T>& list) {
    static_assert(std::is_trivially_copyable_v<T>);
    add(uint64_t{list.size()});
    add_bytes(list.data(), list.size() * sizeof(T));
  }
  std::string take() { return std::move(bytes_); }

 private:
  void add_bytes(const void* data, size_t bytes) { bytes_.append(static_cast<const char*>(data), bytes); }

  std::string bytes_;
};

// FaultError: the bytes end before what is asked for.
class Unpacker {
 public:
  // what: the message, for the words of an error.
  Unpacker(std::string_view bytes, const char* what) : bytes_(bytes), what_(what) {}

  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string text() { return std::string(take(get<uint64_t>())); }
  template <class T>
  std::vector<T> list() {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(count(sizeof(T)));
    const std::string_view bytes = take(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // Of things that take at least so many bytes each: what memory is taken for is there.
  size_t count(size_t least) {
    const auto n = get<uint64_t>();
    if (n > bytes_.size() / least) fail<FaultError>("{} ends early", what_);
    return n;
  }

 private:
  std::string_view take(uint64_t n) {
    if (n > bytes_.size()) fail<FaultError>("{} ends early", what_);
    const std::string_view found = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return found;
  }

  std::string_view bytes_;
  const char* what_;
};

}  // namespace hlat
