// The index of a checkpoint: what it holds, where each piece of it lies, and what a resume needs besides tensors. A folder is a checkpoint
// when it has an index. docs/checkpoints.md describes the file; its version counts up when a reader has to change.
//
// A global tensor is cut into pieces of at most kMaxPiece bytes, each element in just one. A piece is a one-dimensional tensor of a
// safetensors file; its ElementMap says which global elements it has. The pieces of a file lie one after the other, in the index's order.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/element_map.h"
#include "tensor/tensor.h"

namespace hlat {

inline constexpr int kIndexVersion = 1;
inline constexpr size_t kMaxPiece = size_t{4} << 20;
inline constexpr std::string_view kIndexName = "index.json";

// A checkpoint, or a file of one, that is not what was saved. The message names file and piece.
class DamagedCheckpoint : public UsageError {
 public:
  using UsageError::UsageError;
};

// What a tensor is to its parameter.
enum class StateKind : uint8_t { weight, master, moment1, moment2 };
inline constexpr int kStateKinds = 4;
std::string_view name_of(StateKind kind);  // as in the index: "weight", "master", "moment1", "moment2"

struct SavedTensor {
  std::string name;  // of the parameter: "layers.3.attention.qkv"
  StateKind kind = StateKind::weight;
  DType dtype = DType::f32;  // f32 or bf16
  Shape shape;               // global
  bool operator==(const SavedTensor&) const = default;
};

struct Piece {
  int32_t tensor = 0;  // number in CheckpointIndex::tensors
  ElementMap map;      // element e of the piece is global element map.global(e); map.offset is 0 unless run > 0
  int64_t count = 0;
  uint64_t checksum = 0;  // of its bytes
  uint64_t offset = 0;    // of its first byte in the file; follows from the pieces before it and is not written
  bool operator==(const Piece&) const = default;
};

struct SavedFile {
  std::string name;           // in the folder
  uint64_t header_bytes = 0;  // before the first piece: length field, JSON, spaces
  uint64_t header_checksum = 0;
  std::vector<Piece> pieces;

  uint64_t bytes(const std::vector<SavedTensor>& tensors) const;  // of the whole file
};

// A part of the training state, named and versioned by whoever writes it.
struct Record {
  std::string name;
  int version = 1;
  std::string json;  // one JSON value
  bool operator==(const Record&) const = default;
};

enum class CheckpointContent : uint8_t {
  training,  // all that a run goes on from
  weights,   // tensors of kind weight alone
};
std::string_view name_of(CheckpointContent content);

struct CheckpointIndex {
  CheckpointContent content = CheckpointContent::training;
  std::string run;      // id of the run that saved it
  std::string hlat;     // version of the program
  std::string created;  // UTC, ISO 8601
  int64_t step = 0, tokens = 0;
  std::optional<double> loss;  // of that step; none: not known
  std::string config;          // JSON object, as to_json(Config) writes it
  std::vector<SavedTensor> tensors;
  std::vector<SavedFile> files;
  std::vector<Record> records;

  const Record* find_record(std::string_view name) const;                    // null: there is none
  std::optional<int32_t> find(StateKind kind, std::string_view name) const;  // number of a tensor
  uint64_t bytes() const;                                                    // of all files

  std::string save() const;
  // Checks all that can be checked without the files: checksum, version, names, sizes, that every tensor has as many elements in its
  // pieces as in its shape. DamagedCheckpoint says what is wrong; a version of the future is a UsageError.
  static CheckpointIndex parse(std::string_view text);
};

// Bytes of a piece, and its name in the safetensors file: "moment1:layers.3.attention.qkv:1048576", the last its first global element.
uint64_t piece_bytes(const Piece& piece, const std::vector<SavedTensor>& tensors);
std::string piece_name(const Piece& piece, const std::vector<SavedTensor>& tensors);

}  // namespace hlat
