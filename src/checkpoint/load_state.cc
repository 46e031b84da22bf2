#include "checkpoint/load_state.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/agreement.h"
#include "checkpoint/file_input.h"
#include "checkpoint/listing.h"
#include "checkpoint/state_pieces.h"
#include "checkpoint/state_reading.h"

namespace hlat {
namespace {

constexpr int64_t kZeros = int64_t{1} << 18;  // elements that are zeroed at once
constexpr size_t kMostProblems = 64;          // that a message tells about

// Files of a network may be seen late: ranks that see different checkpoints must not exchange parts of them.
void check_same_checkpoint(const Mesh& mesh, const CheckpointReader& reader) {
  const CheckpointIndex& index = reader.index();
  const std::vector<std::string> seen = union_over(
      mesh, {fmt::format("step {} of run {}, created {}, {} tensors", index.step, index.run, index.created, index.tensors.size())});
  if (seen.size() > 1) fail<FaultError>("{}: ranks see different checkpoints: {}", reader.folder().string(), fmt::join(seen, " | "));
}

// Some ranks do not see files, or not all of their bytes. Where rank 0 does, they come late to those ranks: nothing is damaged. Collective.
[[noreturn]] void fail_missing(const Mesh& mesh, const CheckpointReader& reader, const std::string& reason) {
  std::vector<std::string> missing;
  if (rank_of(mesh.coord(), mesh.shape()) == 0)
    if (std::string text = missing_bytes(reader.folder(), reader.index()); !text.empty()) missing.push_back(std::move(text));
  if (union_over(mesh, missing).empty())
    fail<FaultError>("{}\nrank 0 sees all files of {} whole: machines see the file system in different states", reason,
                     reader.folder().string());
  throw DamagedCheckpoint(reason);
}

// Of the tensors of the checkpoint, those that any stage of the model uses.
std::vector<uint8_t> used_by_model(const Mesh& mesh, const std::vector<uint8_t>& own) {
  Comm& stages = mesh.along(Axis::pp);
  std::vector<uint8_t> all(own.size() * static_cast<size_t>(stages.size())), used = own;
  if (own.empty()) return used;
  std::copy(own.begin(), own.end(), all.begin() + static_cast<int64_t>(own.size()) * stages.rank());
  stages.host().all_gather_bytes(all.data(), own.size());
  for (size_t i = 0; i < all.size(); ++i) used[i % own.size()] |= all[i];
  return used;
}

void refuse(const CheckpointReader& reader, const std::vector<std::string>& problems) {
  if (problems.empty()) return;
  std::string text = reader.folder().string() + " cannot be loaded into this model:";
  for (size_t i = 0; i < std::min(problems.size(), kMostProblems); ++i) text += "\n  " + problems[i];
  if (problems.size() > kMostProblems) text += fmt::format("\n  and {} more tensors", problems.size() - kMostProblems);
  throw UsageError(text);
}

void zero(Device& device, Tensor t, int64_t begin, int64_t end) {
  const std::vector<std::byte> zeros(static_cast<size_t>(std::clamp<int64_t>(end - begin, 0, kZeros)) * size_of(t.dtype));
  for (; begin < end; begin += kZeros) device.upload(t.rows(begin, std::min(begin + kZeros, end)), zeros.data());
}

// What no parameter lies in: it is summed, gathered and compared with the rest of a bucket.
void zero_padding(const ParamStore& params, Device& device) {
  for (const Bucket& b : params.buckets()) {
    const auto gap = [&](int64_t begin, int64_t end) {
      zero(device, b.weight, begin, end);
      if (!b.m.defined()) return;
      zero(device, b.grad, begin, end);
      const int64_t own = b.own.begin, x = std::clamp(begin, own, b.own.end()), y = std::clamp(end, own, b.own.end());
      for (const Tensor& t : {b.master, b.m, b.v})
        if (t.defined()) zero(device, t, x - own, y - own);
    };
    int64_t end = 0;
    for (const ParamId id : b.params) {
      gap(end, params.offset(id));
      end = params.offset(id) + params.spec(id).slice.local().numel();
    }
    gap(end, b.weight.numel());
  }
}

void zero_moments(const ParamStore& params, Device& device) {
  for (const Bucket& b : params.buckets())
    for (const Tensor& t : {b.m, b.v})
      if (t.defined()) zero(device, t, 0, t.numel());
}

std::vector<TensorToRead> tensors_to_read(const ParamStore& params, const Mesh& mesh, const StateSources& sources) {
  std::vector<TensorToRead> tensors;
  for (const StatePiece& p : state_pieces(params, mesh.coord().dp, mesh.shape().dp, Rows::all))
    if (const int32_t from = sources.of(p.kind, p.param); from != StateSources::kZero)
      tensors.push_back({.to = p.tensor, .tensor = from, .map = p.map});
  return tensors;
}

// Each rank has read its share of every bucket. Optimizer state is shared out already under ZeRO-1.
void exchange_shares(const ParamStore& params, const Mesh& mesh, LoadWhat what) {
  Comm& dp = mesh.along(Axis::dp);
  if (dp.size() == 1) return;
  for (const Bucket& b : params.buckets()) {
    const int64_t total = b.weight.numel();
    const Part share = part_of(total, dp.rank(), dp.size());
    const auto gather = [&](const Tensor& t) {
      if (t.defined() && t.numel() == total) dp.all_gather(t, t.rows(share.begin, share.end()));
    };
    if (!b.fp8) gather(b.weight);  // else it is made of its master
    gather(b.master);
    if (what == LoadWhat::weights) continue;
    gather(b.m);
    gather(b.v);
  }
}

}  // namespace

LoadResult load_state(CheckpointReader& reader, const ParamStore& params, const Mesh& mesh, Device& device, LoadWhat what, int threads) {
  check_same_checkpoint(mesh, reader);
  StateSources sources;
  together(mesh, [&] { sources = find_sources(reader.index(), params, what); });
  std::vector<std::string> problems = union_over(mesh, sources.problems);
  for (std::string& line : unused_weights(reader.index(), used_by_model(mesh, sources.used))) problems.push_back(std::move(line));
  refuse(reader, problems);

  LoadResult result{.conversions = union_over(mesh, sources.conversions)};
  const uint64_t before = reader.bytes_read();
  try {
    together(mesh, [&] {
      zero_padding(params, device);
      if (what == LoadWhat::weights) zero_moments(params, device);
      read_tensors(reader, tensors_to_read(params, mesh, sources), device, threads);
    });
  } catch (const MissingBytes& e) {
    fail_missing(mesh, reader, e.what());
  }
  exchange_shares(params, mesh, what);
  result.bytes_read = reader.bytes_read() - before;
  return result;
}

}  // namespace hlat
