// Faults that wait for a save: disk_full and corrupt. Saves have threads of their own, so this is for any thread.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/saver.h"
#include "config/fault_spec.h"

namespace hlat::fault {

bool waits_for_a_save(FaultKind kind);

struct SaveFault {
  FaultSpec spec;
  bool random = false;
  int64_t left = 1;  // how often it may come
};

class SaveFaults {
 public:
  // What a fault is recorded and told by, before it comes about.
  using Tell = std::function<void(const FaultSpec&, bool random, const std::string& more)>;

  void add(SaveFault fault);
  // Before the first bytes of a save are written, in this step. DiskFull where that is planted.
  void before_write(int64_t step, const Tell& tell);
  // A save has ended. Whether this process is to end now: the checkpoint has been changed on disk.
  bool corrupts(const SaveOutcome& outcome, const Tell& tell);

 private:
  std::optional<SaveFault> take(FaultKind kind, int64_t step);  // one that is due, once more

  std::mutex mutex_;
  std::vector<SaveFault> faults_;
};

}  // namespace hlat::fault
