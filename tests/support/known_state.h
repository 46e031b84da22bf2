// State of which every element of the global tensors is known, put into the stores of ranks and looked for in checkpoints.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/saver.h"
#include "checkpoint/state_pieces.h"
#include "ops/device.h"
#include "support/host_memory.h"

namespace hlat {

// A number that differs between neighbours, tensors, kinds and versions; not exact in bf16.
inline double known_value(const std::string& name, StateKind kind, int64_t element, int version) {
  const uint64_t mixed = hash_name(name) + static_cast<uint64_t>(element) * 2654435761u + static_cast<uint64_t>(kind) * 40503u;
  return (static_cast<double>(mixed % 65521) - 32000) / 64 + version * 1000.25;
}

// Of one bucket, or of all (-1): what this rank saves or could save gets the version's values.
inline void put_known(const ParamStore& params, Device& device, int shard, int shards, int version, int bucket = -1) {
  for (const StatePiece& piece : state_pieces(params, shard, shards, Rows::all)) {
    if (bucket >= 0 && piece.bucket != bucket) continue;
    std::vector<std::byte> bytes(piece.tensor.bytes());
    Tensor host = piece.tensor;
    host.data = bytes.data();
    for (int64_t e = 0; e < host.numel(); ++e)
      store_f64(host, e, known_value(params.spec(piece.param).name, piece.kind, piece.map.global(e), version));
    device.upload(piece.tensor, bytes.data());
  }
}

// The checkpoint is whole, has each element of just these tensors once, and all of them are the version's.
inline void expect_known(const std::filesystem::path& folder, const std::vector<SavedTensor>& expected, int version) {
  CheckpointReader reader(folder);
  const CheckpointIndex& index = reader.index();
  EXPECT_EQ(index.tensors.size(), expected.size());
  for (const SavedTensor& t : expected) {
    const auto number = index.find(t.kind, t.name);
    ASSERT_TRUE(number) << t.name;
    EXPECT_EQ(index.tensors[static_cast<size_t>(*number)], t);
    std::vector<int> times(static_cast<size_t>(t.shape.numel()));
    for (const SavedFile& file : index.files)
      for (const Piece& p : file.pieces)
        for (int64_t e = 0; p.tensor == *number && e < p.count; ++e) ++times[static_cast<size_t>(p.map.global(e))];
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), t.shape.numel()) << t.name;
    HostMemory memory;
    const Tensor found = memory.zeros(t.dtype, {t.shape.numel()}), right = memory.zeros(t.dtype, {t.shape.numel()});
    reader.read(*number, 0, t.shape.numel(), found.data);
    for (int64_t e = 0; e < right.numel(); ++e) store_f64(right, e, known_value(t.name, t.kind, e, version));
    EXPECT_EQ(to_f64(found), to_f64(right)) << t.name << " " << name_of(t.kind);
  }
  uint64_t bytes = 0;
  reader.verify([&](uint64_t n) { bytes += n; });
  EXPECT_GT(bytes, 0u);
}

// What a store that holds the whole model saves.
inline std::vector<SavedTensor> tensors_of(const ParamStore& whole, CheckpointContent content) {
  std::vector<SavedTensor> all;
  for (ParamId id = 0; id < whole.size(); ++id)
    for (const StateKind kind : {StateKind::weight, StateKind::master, StateKind::moment1, StateKind::moment2}) {
      if (content == CheckpointContent::weights && kind != StateKind::weight) continue;
      if (kind == StateKind::master && !whole.precision().master) continue;
      all.push_back(saved_tensor(whole, id, kind));
      if (content == CheckpointContent::weights) all.back().dtype = DType::bf16;
    }
  return all;
}

inline SaveRequest save_request(const std::filesystem::path& parent, int64_t step,
                                CheckpointContent content = CheckpointContent::training) {
  SaveRequest request{.parent = parent, .content = content, .index = {}};
  request.index.run = "run of a test";
  request.index.hlat = "0.0";
  request.index.created = "2026-01-01T00:00:00Z";
  request.index.step = step;
  request.index.config = "{}";
  return request;
}

}  // namespace hlat
