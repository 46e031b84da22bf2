// A Hugging Face folder becomes a checkpoint of weights alone: PARENT/step_0, with the tokenizer's files in its folder `tokenizer`. The
// weights pass through a few MiB of memory, whatever the model's size. PARENT appears when all of it is on disk.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "tensor/dtype.h"

namespace hlat {

struct ImportOptions {
  std::optional<DType> dtype = {};  // of all tensors; none: as they are, f16 as f32
  std::string hlat = {};            // version of the program
  std::function<void(uint64_t more, uint64_t all)> progress = {};
};

struct ImportResult {
  std::filesystem::path checkpoint;
  std::filesystem::path tokenizer;  // to load it from, in the checkpoint; empty: there was none
  std::string architecture;
  Config config;             // the model, and train.seq_len
  std::vector<DType> types;  // that tensors have
  int64_t parameters = 0;
  uint64_t bytes = 0;
  std::vector<std::string> notes;
};

// UsageError names what is wrong or not supported: keys of config.json, tensors that are unknown, missing or of another shape.
ImportResult import_hf(const std::filesystem::path& source, const std::filesystem::path& parent, const ImportOptions& options);

// The record of an imported checkpoint, {"architecture": ..., "bos_token_id": ..., "eos_token_id": ...}: an export has the ids again.
inline constexpr const char* kImportRecord = "hugging_face";

}  // namespace hlat
