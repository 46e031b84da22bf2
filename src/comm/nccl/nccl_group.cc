#include "comm/nccl/nccl_group.h"

#include <exception>

#include "comm/nccl/nccl_library.h"

namespace hlat {
namespace {

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears it, so that a later call is not blamed
  fail("CUDA: {} in {}", cudaGetErrorString(status), what);
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return ncclFloat32;
    case DType::bf16: return ncclBfloat16;
    case DType::f64: return ncclFloat64;
    case DType::i32: return ncclInt32;
    case DType::f8e4m3:
    case DType::f8e5m2: break;  // moved as bytes, never summed
  }
  return ncclNumTypes;
}

}  // namespace

NcclShared::NcclShared(int device_index, cudaStream_t work_stream, double limit_s)
    : device(device_index), work(work_stream), watch(limit_s) {
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
  check_cuda(cudaMalloc(&spare, kSpareBytes), "cudaMalloc");
}

NcclShared::~NcclShared() {
  cudaSetDevice(device);
  cudaFree(spare);
}

NcclGroup::NcclGroup(NcclShared& shared, const ncclUniqueId& id, int rank, int size, std::string name)
    : shared_(shared), rank_(rank), size_(size), name_(std::move(name)) {
  check_cuda(cudaSetDevice(shared_.device), "cudaSetDevice");
  HLAT_NCCL(Nccl::get().CommInitRank(&comm_, size, id, rank));
  // Communication that waits behind computation holds up other ranks, so its kernels go first.
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "cudaStreamCreate");
  for (cudaEvent_t* e : {&work_done_, &ops_done_}) check_cuda(cudaEventCreateWithFlags(e, cudaEventDisableTiming), "cudaEventCreate");
  shared_.watch.add(*this);
}

// Errors here were reported by the call that met them. After a failure the peers may not be there to end the communicator with.
NcclGroup::~NcclGroup() {
  shared_.watch.remove(*this);
  cudaSetDevice(shared_.device);
  if (!aborted_) {
    if (std::uncaught_exceptions() > 0) {
      abort();
    } else {
      cudaStreamSynchronize(stream_);
      Nccl::get().CommDestroy(comm_);
    }
  }
  cudaStreamSynchronize(stream_);
  for (const Operation& o : under_way_) {
    cudaEventDestroy(o.begin);
    cudaEventDestroy(o.end);
  }
  for (const cudaEvent_t e : free_) cudaEventDestroy(e);
  for (const cudaEvent_t e : {work_done_, ops_done_}) cudaEventDestroy(e);
  cudaStreamDestroy(stream_);
}

cudaEvent_t NcclGroup::take_event() {
  if (free_.empty()) {
    cudaEvent_t e = nullptr;
    check_cuda(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreate");
    return e;
  }
  const cudaEvent_t e = free_.back();
  free_.pop_back();
  return e;
}

void NcclGroup::wait() {
  check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  shared_.watch.check();
}

void NcclGroup::after_work() {
  check_cuda(cudaEventRecord(work_done_, shared_.work), "cudaEventRecord");
  check_cuda(cudaStreamWaitEvent(stream_, work_done_, 0), "cudaStreamWaitEvent");
}

void NcclGroup::before_work() {
  check_cuda(cudaEventRecord(ops_done_, stream_), "cudaEventRecord");
  check_cuda(cudaStreamWaitEvent(shared_.work, ops_done_, 0), "cudaStreamWaitEvent");
}

cudaEvent_t NcclGroup::point() {
  const std::lock_guard lock(mutex_);
  const cudaEvent_t e = take_event();
  check_cuda(cudaEventRecord(e, stream_), "cudaEventRecord");
  return e;
}

void NcclGroup::work_waits(cudaEvent_t point) {
  check_cuda(cudaStreamWaitEvent(shared_.work, point, 0), "cudaStreamWaitEvent");
  const std::lock_guard lock(mutex_);
  free_.push_back(point);
}

// An operation stands between two events, by which the watch sees that it has begun and that it is done.
template <class Body>
void NcclGroup::run(const char* kind, const Body& body) {
  shared_.watch.check();
  check_cuda(cudaSetDevice(shared_.device), "cudaSetDevice");
  Operation o{.kind = kind};
  {
    const std::lock_guard lock(mutex_);
    o.begin = take_event();
    o.end = take_event();
    o.number = next_++;
  }
  check_cuda(cudaEventRecord(o.begin, stream_), kind);
  body(Nccl::get());
  check_cuda(cudaEventRecord(o.end, stream_), kind);
  const std::lock_guard lock(mutex_);
  under_way_.push_back(o);
}

void NcclGroup::all_reduce(void* data, int64_t count, DType dtype) {
  run("all_reduce", [&](const Nccl& nccl) {
    HLAT_NCCL(nccl.AllReduce(data, data, static_cast<size_t>(count), type_of(dtype), ncclSum, comm_, stream_));
  });
}

void NcclGroup::reduce_scatter(void* own, const void* full, const Shares& shares, DType dtype) {
  const auto element = static_cast<int64_t>(size_of(dtype));
  const ncclDataType_t type = type_of(dtype);
  run("reduce_scatter", [&](const Nccl& nccl) {
    if (shares.rows % shares.size == 0) {
      HLAT_NCCL(nccl.ReduceScatter(full, own, static_cast<size_t>(shares.bytes(0) / element), type, ncclSum, comm_, stream_));
      return;
    }
    HLAT_NCCL(nccl.GroupStart());
    for (int r = 0; r < shares.size; ++r) {
      const auto count = static_cast<size_t>(shares.bytes(r) / element);
      if (count > 0) HLAT_NCCL(nccl.Reduce(at(full, shares.begin(r)), r == rank_ ? own : nullptr, count, type, ncclSum, r, comm_, stream_));
    }
    HLAT_NCCL(nccl.GroupEnd());
  });
}

void NcclGroup::all_gather(void* full, const void* own, const Shares& shares) {
  run("all_gather", [&](const Nccl& nccl) {
    if (shares.rows % shares.size == 0) {
      HLAT_NCCL(nccl.AllGather(own, full, static_cast<size_t>(shares.bytes(0)), ncclInt8, comm_, stream_));
      return;
    }
    HLAT_NCCL(nccl.GroupStart());
    for (int r = 0; r < shares.size; ++r) {
      const auto bytes = static_cast<size_t>(shares.bytes(r));
      std::byte* place = at(full, shares.begin(r));
      if (bytes > 0) HLAT_NCCL(nccl.Broadcast(r == rank_ ? own : place, place, bytes, ncclInt8, r, comm_, stream_));
    }
    HLAT_NCCL(nccl.GroupEnd());
  });
}

void NcclGroup::broadcast(void* data, size_t bytes, int root) {
  run("broadcast", [&](const Nccl& nccl) { HLAT_NCCL(nccl.Broadcast(data, data, bytes, ncclInt8, root, comm_, stream_)); });
}

void NcclGroup::send(const void* data, size_t bytes, int peer) {
  run("send", [&](const Nccl& nccl) { HLAT_NCCL(nccl.Send(data, bytes, ncclInt8, peer, comm_, stream_)); });
}

void NcclGroup::recv(void* data, size_t bytes, int peer) {
  run("recv", [&](const Nccl& nccl) { HLAT_NCCL(nccl.Recv(data, bytes, ncclInt8, peer, comm_, stream_)); });
}

std::optional<WatchedStream::Current> NcclGroup::current() {
  cudaSetDevice(shared_.device);
  const std::lock_guard lock(mutex_);
  while (!under_way_.empty() && cudaEventQuery(under_way_.front().end) == cudaSuccess) {
    free_.push_back(under_way_.front().begin);
    free_.push_back(under_way_.front().end);
    under_way_.pop_front();
  }
  if (under_way_.empty() || cudaEventQuery(under_way_.front().begin) != cudaSuccess) return {};
  const Operation& o = under_way_.front();
  return Current{.number = o.number, .what = fmt::format("{} {} on rank {} of {}", name_, o.kind, rank_, size_)};
}

std::string NcclGroup::error() {
  ncclResult_t status = ncclSuccess;
  if (Nccl::get().CommGetAsyncError(comm_, &status) == ncclSuccess && status == ncclSuccess) return {};
  return fmt::format("{} on rank {} of {}: NCCL: {}", name_, rank_, size_, Nccl::get().GetErrorString(status));
}

void NcclGroup::abort() {
  if (aborted_) return;
  aborted_ = true;
  Nccl::get().CommAbort(comm_);
}

}  // namespace hlat
