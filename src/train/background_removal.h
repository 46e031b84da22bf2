// Removes checkpoints on a thread that nobody has to wait for: a file system that is slow, or hangs, holds up neither training nor the end
// of a process. One removal at a time. A removal that is still at work when its owner ends is left behind and ends with the process: what
// it has not removed then are leftovers (remove_leftovers), or checkpoints that the next removal takes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hlat {

struct RemovalOutcome {
  size_t removed = 0;
  std::string problem = {};  // empty: none
};

class BackgroundRemoval {
 public:
  BackgroundRemoval();
  ~BackgroundRemoval();
  BackgroundRemoval(const BackgroundRemoval&) = delete;
  BackgroundRemoval& operator=(const BackgroundRemoval&) = delete;

  bool busy() const;
  // Not while busy. `choose` says on the thread which steps go; it may outlive its caller.
  void begin(std::filesystem::path parent, std::function<std::vector<int64_t>()> choose);
  std::optional<RemovalOutcome> take_outcome();  // of a removal that ended, once
  bool wait(double seconds) const;               // until it is not busy, at most so long; false: it goes on

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hlat
