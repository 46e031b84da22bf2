#include "runtime/assembly.h"

#include <algorithm>

#include "base/memory_limits.h"

namespace hlat {

Assembly::Assembly(const Config& config, Backend& backend, Comm& world, int local_ranks, ParamUse use, bool cached)
    : config_(config),
      backend_(backend),
      use_(use),
      cached_(cached),
      local_ranks_(local_ranks),
      comm_(config_, backend, world, local_ranks),
      scratch_model_(use == ParamUse::training ? backend.make_ops(measuring_) : backend.make_inference_ops(measuring_)),
      plan_(dry_run(config_, target(), world.rank())) {}

Fit Assembly::fit() const { return fit_here(backend_, comm_.sharing(), local_ranks_); }

void Assembly::connect(const DeviceComm::WrapComm& wrap) {
  HLAT_CHECK(!mesh_, "a rank is connected once");
  mesh_.emplace(comm_.make_mesh(wrap));
}

PlacedModel& Assembly::build(const DeviceComm::WrapComm& wrap) {
  HLAT_CHECK(!model_, "a rank is built once");
  if (!mesh_) connect(wrap);
  return model_.emplace(config_, precision_of(config_), *mesh_, backend_, &plan_.memory, use_);
}

std::string Assembly::describe() const {
  const std::string each = mesh_ && mesh_->shape().ranks() > 1 ? ", each rank" : "";
  std::string machine = backend_.describe();
  machine.insert(std::min(machine.find('\n'), machine.size()), each);
  return machine + (comm_.describe().empty() ? "" : "\n" + comm_.describe());
}

Fit fit_here(Backend& backend, int sharing, int local_ranks) {
  const bool on_host = backend.device_id().empty();
  const std::string what = on_host ? "this machine" : "this machine's GPU";
  Fit fit{.device = sharing > 1 ? fmt::format("{}, shared by {} ranks", what, sharing) : what,
          .available = static_cast<double>(backend.device().memory_available()) / sharing,
          .on_host = on_host,
          .resident = static_cast<double>(resident_bytes())};
  if (!on_host) fit.host_available = static_cast<double>(host_memory_available()) / local_ranks;
  return fit;
}

}  // namespace hlat
