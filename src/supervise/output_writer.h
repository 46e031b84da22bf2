// Text for a terminal or a log, written by a thread of its own: whoever hands it over never waits, however long the reader does. Of text
// that nobody takes the oldest is left out, with a word in its place.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hlat {

class OutputWriter {
 public:
  using Write = std::function<void(std::string_view)>;  // may block; called from the thread. Must not throw
  OutputWriter(Write write, size_t most_bytes);
  ~OutputWriter();  // waits some seconds for what is there to be written; then the thread is left behind
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  void put(const std::string& text);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hlat
