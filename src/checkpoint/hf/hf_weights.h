// The weights of a Hugging Face folder: model.safetensors, or the shards that model.safetensors.index.json names. All headers are read and
// checked when it is opened; elements are read when they are asked for. Files are never written.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "tensor/dtype.h"

namespace hlat {

class HfWeights {
 public:
  struct Entry {
    SafeTensor tensor;
    size_t file = 0;
    uint64_t offset = 0;  // of its first byte in the file
  };

  // UsageError: no weights, weights in a format that can execute code, an index that names other folders, a file that is no safetensors
  // file or lacks a tensor of the index, a tensor in two files.
  explicit HfWeights(const std::filesystem::path& folder);
  ~HfWeights();
  HfWeights(const HfWeights&) = delete;
  HfWeights& operator=(const HfWeights&) = delete;

  const std::map<std::string, Entry>& tensors() const { return tensors_; }
  const Entry* find(const std::string& name) const;  // null: there is none
  const std::filesystem::path& file_of(const Entry& e) const { return files_[e.file].path; }

  // Elements [first, first + count) of a tensor of F32, BF16 or F16, as f32 or bf16.
  void read(const Entry& e, int64_t first, int64_t count, DType as, void* to) const;

 private:
  struct File {
    std::filesystem::path path;
    int fd = -1;
  };
  void open_shards(const std::filesystem::path& index);
  void add(const std::filesystem::path& path);

  std::vector<File> files_;
  std::map<std::string, Entry> tensors_;
};

// Whether read() takes tensors of this type.
bool is_weight_type(std::string_view safetensors_type);

// The safetensors name of one of our types.
std::string_view safetensors_name(DType dtype);

// A JSON file of at most max_bytes. UsageError when it is larger or cannot be opened.
std::string read_small_file(const std::filesystem::path& path, uint64_t max_bytes);

}  // namespace hlat
