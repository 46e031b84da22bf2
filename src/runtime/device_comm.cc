#include "runtime/device_comm.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/format.h"
#include "base/rng.h"
#include "comm/host_exchange.h"
#include "comm/nccl/nccl_comm.h"
#include "comm/staged_comm.h"
#include "runtime/backends.h"
#ifdef HLAT_HAVE_CUDA
#include "backend/cuda/cuda_backend.h"
#endif

namespace hlat {

namespace {

// What every rank tells the others.
struct DeviceInfo {
  uint64_t device = 0;  // 0: the host
  bool nccl = false;    // it can be loaded
};

void check_asked(const Config& config, bool on_gpu, bool shared, bool missing, const std::string& why) {
  const std::string& asked = config.parallel.comm;
  if (asked == "auto") return;
  if (!on_gpu) throw UsageError(fmt::format("parallel.comm = {}: only ranks on GPUs have a choice; set parallel.comm=auto", asked));
  if (asked != "nccl") return;
  if (shared)
    throw UsageError(
        "parallel.comm = nccl: NCCL refuses two ranks on one GPU; start one rank for each GPU, or set parallel.comm=auto or staged");
  if (missing) fail<UsageError>("parallel.comm = nccl: {}", why.empty() ? "another rank cannot load NCCL" : why);
}

}  // namespace

DeviceComm::DeviceComm(const Config& config, Backend& backend, Comm& world, int local_ranks)
    : config_(config), backend_(backend), world_(world) {
  const std::string id = backend.device_id();
  std::string why;
  const bool loads = !id.empty() && world.size() > 1 && NcclRank::available(why);
  const DeviceInfo mine{.device = id.empty() ? 0 : hash_name(id), .nccl = loads};
  const std::vector<DeviceInfo> all = all_gather_values(world, mine);
  std::map<uint64_t, int> holders;  // of a device
  for (const DeviceInfo& c : all) ++holders[c.device];
  if (holders.contains(0) && holders.size() > 1)
    throw UsageError("some ranks run on a GPU and others on the CPU; set device.backend=cpu, or start ranks only where there is a GPU");
  const bool on_gpu = mine.device != 0;
  const bool shared = on_gpu && holders.size() < all.size();
  const bool missing = std::any_of(all.begin(), all.end(), [](const DeviceInfo& c) { return !c.nccl; });
  sharing_ = on_gpu ? holders[mine.device] : local_ranks;
  if (world.size() == 1) return;
  check_asked(config, on_gpu, shared, missing, why);
  if (!on_gpu) return;
  const bool staged = config.parallel.comm == "staged" || shared || missing;
  transport_ = staged ? Transport::staged : Transport::nccl;
  if (!staged) return;
  text_ = "tensors move through host memory";
  if (shared) text_ += fmt::format(": {} ranks share this GPU", sharing_);
  if (!shared && missing && config.parallel.comm == "auto") text_ += ": " + (why.empty() ? "another rank cannot load NCCL" : why);
}

DeviceComm::~DeviceComm() = default;

std::unique_ptr<Comm> DeviceComm::on_device(std::unique_ptr<Comm> host) {
  if (transport_ == Transport::staged)
    return std::make_unique<StagedComm>(std::move(host), [this] { return backend_.device().make_copy_stream(); });
  return transport_ == Transport::nccl ? nccl_->make(std::move(host)) : std::move(host);
}

Mesh DeviceComm::make_mesh(const WrapComm& wrap) {
  const bool by_nccl = transport_ == Transport::nccl;
  const size_t before = by_nccl ? backend_.device().memory_available() : 0;
#ifdef HLAT_HAVE_CUDA
  if (by_nccl) {
    const auto& cuda = dynamic_cast<const CudaBackend&>(backend_);
    const NcclOptions options{
        .device = cuda.index(), .work_stream = cuda.stream(), .time_limit_s = static_cast<double>(config_.parallel.timeout_s)};
    nccl_ = std::make_unique<NcclRank>(options);
  }
#endif
  Mesh mesh(config_, world_, [&](std::unique_ptr<Comm> host) { return on_device(wrap ? wrap(std::move(host)) : std::move(host)); });
  if (!by_nccl) return mesh;
  const size_t after = backend_.device().memory_available();
  text_ = fmt::format("tensors move by {}, which has taken {} of this GPU's memory, outside the plan", nccl_->describe(),
                      format_bytes(before > after ? before - after : 0));
  return mesh;
}

CommHere comm_here(const Config& config, const Backend& backend, int ranks) {
  if (backend.device_id().empty()) return {.transport = Transport::host, .sharing = ranks};
  const int devices = std::max(1, static_cast<int>(usable_gpus()));
  std::string why;
  const bool nccl = config.parallel.comm != "staged" && ranks <= devices && NcclRank::available(why);
  const Transport transport = nccl ? Transport::nccl : Transport::staged;
  return {.transport = ranks == 1 ? Transport::host : transport, .sharing = (ranks + devices - 1) / devices};
}

}  // namespace hlat
