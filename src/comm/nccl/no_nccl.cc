// A build without NCCL's header: ranks on GPUs exchange tensors through host memory.
#include "comm/nccl/nccl_comm.h"

namespace hlat {

struct NcclShared {};

bool NcclRank::available(std::string& why) {
  why = "this hlat was built without NCCL";
  return false;
}

NcclRank::NcclRank(const NcclOptions& /*options*/) { fail<UsageError>("this hlat was built without NCCL"); }
NcclRank::~NcclRank() = default;
std::unique_ptr<Comm> NcclRank::make(std::unique_ptr<Comm> host) { return host; }
std::string NcclRank::describe() const { return {}; }

}  // namespace hlat
