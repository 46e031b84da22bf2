#include "support/small_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>

#include "base/bf16.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/piece_file.h"

namespace hlat::test {
namespace {

CheckpointIndex index_of(const SmallCheckpoint& c) {
  CheckpointIndex index;
  index.content = c.content;
  index.run = c.run;
  index.hlat = "0.0.0";
  index.created = "2026-01-02T03:04:05Z";
  index.step = c.step;
  index.tokens = c.tokens;
  index.loss = c.loss;
  index.config = c.config;
  index.records = c.records;
  for (const SmallTensor& t : c.tensors) index.tensors.push_back({t.name, t.kind, t.dtype, t.shape});
  return index;
}

void put(const SmallTensor& t, int64_t element, std::byte*& to) {
  const float x = t.values.at(static_cast<size_t>(element));
  const bf16 rounded = to_bf16(x);
  std::memcpy(to, t.dtype == DType::bf16 ? static_cast<const void*>(&rounded) : &x, size_of(t.dtype));
  to += size_of(t.dtype);
}

}  // namespace

SmallTensor& SmallCheckpoint::tensor(StateKind kind, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const SmallTensor& t) { return t.kind == kind && t.name == name; });
  if (found == tensors.end()) throw std::out_of_range(name);
  return *found;
}

SmallCheckpoint small_model(uint32_t seed, bool optimizer) {
  SmallCheckpoint c;
  c.content = optimizer ? CheckpointContent::training : CheckpointContent::weights;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02f);
  const std::vector<std::pair<std::string, Shape>> params = {
      {"embedding", {16, 8}}, {"layers.0.norm1", {8}}, {"layers.0.attention.qkv", {24, 8}}, {"head.output", {16, 8}}};
  for (const auto& [name, shape] : params) {
    std::vector<float> values(static_cast<size_t>(shape.numel()));
    for (float& v : values) v = normal(random);
    c.tensors.push_back({name, shape, values, StateKind::weight, DType::bf16});
    if (!optimizer) continue;
    c.tensors.push_back({name, shape, values, StateKind::master});
    for (const StateKind kind : {StateKind::moment1, StateKind::moment2}) {
      for (float& v : values) v = normal(random);
      c.tensors.push_back({name, shape, values, kind});
    }
  }
  return c;
}

std::filesystem::path write_small(const std::filesystem::path& parent, const SmallCheckpoint& checkpoint) {
  const auto content = [&](int32_t tensor, int64_t first, int64_t count, void* to) {
    auto* at = static_cast<std::byte*>(to);
    for (int64_t e = first; e < first + count; ++e) put(checkpoint.tensors[static_cast<size_t>(tensor)], e, at);
  };
  return write_checkpoint(parent, index_of(checkpoint), content, checkpoint.max_file_bytes);
}

std::filesystem::path write_in_columns(const std::filesystem::path& parent, const SmallCheckpoint& checkpoint, int ranks) {
  CheckpointIndex index = index_of(checkpoint);
  NewCheckpoint made(parent, checkpoint.step);
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Piece> pieces;
    for (size_t t = 0; t < index.tensors.size(); ++t) {
      const SavedTensor& of = index.tensors[t];
      if (of.shape.rank == 1 && rank > 0) continue;
      const int64_t columns = of.shape[of.shape.rank - 1], width = of.shape.rank == 1 ? columns : columns / ranks;
      add_pieces(pieces, static_cast<int32_t>(t), of, {.first = rank * width, .run = width, .stride = columns},
                 of.shape.numel() / columns * width);
    }
    std::vector<std::byte> bytes;
    for (const Piece& p : pieces) {
      bytes.resize(bytes.size() + piece_bytes(p, index.tensors));
      std::byte* at = bytes.data() + bytes.size() - piece_bytes(p, index.tensors);
      for (int64_t e = 0; e < p.count; ++e) put(checkpoint.tensors[static_cast<size_t>(p.tensor)], p.map.global(e), at);
    }
    PieceFile file(NewCheckpoint::folder_of(parent, checkpoint.step) / fmt::format("rank_{}.safetensors", rank), index.tensors, pieces,
                   index.run, index.step);
    file.write(bytes.data(), bytes.size());
    index.files.push_back(file.finish());
  }
  made.commit(index);
  return checkpoint_path(parent, checkpoint.step);
}

std::vector<float> read_values(CheckpointReader& reader, StateKind kind, const std::string& name) {
  const int32_t number = reader.index().find(kind, name).value();
  const SavedTensor& t = reader.index().tensors[static_cast<size_t>(number)];
  const auto count = static_cast<size_t>(t.shape.numel());
  std::vector<float> values(count);
  if (t.dtype == DType::f32) {
    reader.read(number, 0, t.shape.numel(), values.data());
    return values;
  }
  std::vector<bf16> rounded(count);
  reader.read(number, 0, t.shape.numel(), rounded.data());
  for (size_t i = 0; i < count; ++i) values[i] = to_float(rounded[i]);
  return values;
}

void flip_byte(const std::filesystem::path& file, int64_t offset) {
  std::fstream f(file, std::ios::binary | std::ios::in | std::ios::out);
  if (!f) throw std::runtime_error("cannot open " + file.string());
  if (offset < 0) offset += static_cast<int64_t>(std::filesystem::file_size(file));
  f.seekg(offset);
  const int byte = f.get();
  f.seekp(offset);
  f.put(static_cast<char>(byte ^ 0x10));
}

}  // namespace hlat::test
