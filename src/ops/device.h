// Device memory and copies. Regions get their blocks here once, before the first step.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "tensor/copy_stream.h"
#include "tensor/region.h"

namespace hlat {

// Work on a device that was recorded once and can be done again, on the same memory.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void run() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::byte* allocate(size_t bytes) = 0;  // aligned to kAlign; Error when memory is short
  virtual void free(std::byte* p) = 0;
  virtual void upload(Tensor dst, const void* host) = 0;
  virtual void download(void* host, Tensor src) = 0;
  virtual size_t memory_available() const = 0;        // bytes a new run could take now
  virtual size_t memory_in_use() const { return 0; }  // by all processes; 0 where the device has no memory of its own
  // Calls `work` and keeps what it asks of this device instead of doing it; null, and nothing is done, where that is not possible: without
  // a call, or after it when memory for what was kept is short. Shapes that ops meet for the first time must have been met before.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& /*work*/) { return nullptr; }
  // Copies overlapped with the device's work. Null: its memory is the host's own, and its work is done when a call returns.
  virtual std::unique_ptr<CopyStream> make_copy_stream() { return nullptr; }
};

// A concrete backend, as the composition root hands it to the trainer.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Device& device() = 0;
  virtual std::unique_ptr<Ops> make_ops(Region& temp) = 0;
  // For evaluation and generation, which meet many shapes, each seldom: their kernels are chosen without measurements and are no part of
  // kernel_choices(), so a training run on the same backend goes on as if they had not been.
  virtual std::unique_ptr<Ops> make_inference_ops(Region& temp) { return make_ops(temp); }
  virtual std::string describe() const = 0;  // one line for the log
  // Names the device among all of all hosts, so that ranks find out who shares one. Empty: the host itself.
  virtual std::string device_id() const { return {}; }

  // The kernels of this rank that more than the call decides (ops/kernel_choices.h): those that computed something, and those it was given
  // and has not met yet. Empty: there are none.
  virtual std::string kernel_choices() const { return {}; }
  // From the record of the run that is continued, before anything is planned: scratch follows from the kernels. What fits this device and
  // its libraries then goes before measurements and caches. Lines for the log say what was taken and what was not; Error when it is no
  // record.
  virtual std::vector<std::string> use_kernel_choices(const std::string& /*json*/) { return {}; }
  // What came of them since the last call, for the log: calls that the record lacks, kernels that were refused, work that is slow.
  virtual std::vector<std::string> take_kernel_notes() { return {}; }
};

// Memory with every region sized from a plan, freed with this object.
class PlannedMemory {
 public:
  PlannedMemory(Device& device, const MemoryPlan* plan);  // null: regions that measure
  PlannedMemory(Device& device, const MemoryPlan& plan) : PlannedMemory(device, &plan) {}
  ~PlannedMemory();
  PlannedMemory(const PlannedMemory&) = delete;
  PlannedMemory& operator=(const PlannedMemory&) = delete;
  Memory& memory() { return memory_; }

 private:
  Device& device_;
  Memory memory_;
  std::array<std::byte*, kPurposes> blocks_{};
};

}  // namespace hlat
