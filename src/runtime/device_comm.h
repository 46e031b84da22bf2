// How the ranks of a run exchange tensors, and the mesh made of it. On the CPU: as the launcher connects them. On GPUs
// (parallel.comm): by NCCL where each rank has a GPU of its own, else staged through host memory, since NCCL refuses two ranks on one
// GPU. The choice is the same on all ranks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/transport.h"
#include "config/config.h"
#include "ops/device.h"
#include "parallel/mesh.h"

namespace hlat {

class NcclRank;

class DeviceComm {
 public:
  // Collective over `world`, which must outlive this as the backend must. UsageError when the ranks cannot do what the config asks.
  DeviceComm(const Config& config, Backend& backend, Comm& world, int local_ranks);
  ~DeviceComm();
  DeviceComm(const DeviceComm&) = delete;
  DeviceComm& operator=(const DeviceComm&) = delete;

  Transport transport() const { return transport_; }
  int sharing() const { return sharing_; }  // ranks that share this rank's device, itself among them

  // Collective. `wrap` stands between a rank and the group of one of its axes, for tests that plant faults.
  using WrapComm = std::function<std::unique_ptr<Comm>(std::unique_ptr<Comm>)>;
  Mesh make_mesh(const WrapComm& wrap = {});
  // How tensors move and what that takes outside the plan, one line for the log; empty on the CPU. After make_mesh().
  const std::string& describe() const { return text_; }

 private:
  std::unique_ptr<Comm> on_device(std::unique_ptr<Comm> host);

  const Config& config_;
  Backend& backend_;
  Comm& world_;
  Transport transport_ = Transport::host;
  int sharing_ = 1;
  std::string text_;
  std::unique_ptr<NcclRank> nccl_;
};

// What a run of this config with this many ranks, all on this machine, would come to: for a plan without peers.
struct CommHere {
  Transport transport = Transport::host;
  int sharing = 1;  // ranks on one device
};
CommHere comm_here(const Config& config, const Backend& backend, int ranks);

}  // namespace hlat
