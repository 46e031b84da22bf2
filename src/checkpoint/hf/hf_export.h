// A checkpoint of any layout, of a run or of weights alone, becomes a folder that Hugging Face's `transformers` opens: config.json,
// generation_config.json, safetensors files and the tokenizer's. The weights pass through bounded memory: the reader's cache and two
// buffers. The folder appears when all of it is on disk.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/hf/hf_json.h"
#include "checkpoint/hf/tokenizer_files.h"
#include "config/config.h"

namespace hlat {

// Pieces of a matrix that was split over tp lie side by side: the reader's cache has to have one of each rank.
inline constexpr size_t kExportCache = size_t{256} << 20;

struct ExportOptions {
  DType dtype = DType::bf16;             // f32: from the masters where there are any
  int64_t max_length = 0;                // max_position_embeddings; 0: train.seq_len of the run
  uint64_t shard_bytes = 5'000'000'000;  // a tensor that is larger has a file of its own
  TokenIds ids = {};
  std::vector<TokenizerFile> files = {};  // of the tokenizer
  std::function<void(uint64_t more, uint64_t all)> progress = {};
};

struct ExportResult {
  int64_t parameters = 0;
  uint64_t bytes = 0;  // of weights
  std::vector<std::string> weight_files, notes;
};

// config: of the run, as its index has it. UsageError when the checkpoint's tensors are not those of the config's model.
ExportResult export_hf(CheckpointReader& reader, const Config& config, const std::filesystem::path& to, const ExportOptions& options);

}  // namespace hlat
