#include "checkpoint/hf/hf_import.h"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/json_text.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/checksum.h"
#include "checkpoint/hf/hf_config.h"
#include "checkpoint/hf/hf_tensors.h"
#include "checkpoint/hf/hf_weights.h"
#include "checkpoint/hf/new_folder.h"
#include "checkpoint/hf/tokenizer_files.h"
#include "config/print.h"

namespace hlat {
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxFileBytes = uint64_t{4} << 30;  // of the checkpoint
constexpr int64_t kCompareAtOnce = 1 << 20;            // elements

// A buffer of the rotary embedding that older files hold; it follows from the config.
bool is_frequency_buffer(const std::string& name) { return name.ends_with(".rotary_emb.inv_freq"); }

// A model with all of its tensors there, in the shapes that its config gives.
class Source {
 public:
  explicit Source(const fs::path& folder) : config_(read_config(folder)), weights_(folder), tensors_(hf_tensors(config_.model)) {
    check(folder);
    if (config_.model.tied) check_tied_head(folder);
  }

  const HfConfig& config() const { return config_; }
  const std::vector<HfTensor>& tensors() const { return tensors_; }

  // Of a tensor of ours that is joined of parts: f32 unless all of them are bf16.
  DType dtype(const HfTensor& t) const {
    const bool narrow = std::all_of(t.parts.begin(), t.parts.end(),
                                    [&](const HfPart& p) { return weights_.find(p.name)->tensor.dtype == safetensors_name(DType::bf16); });
    return narrow ? DType::bf16 : DType::f32;
  }

  void read(const HfTensor& t, int64_t first, int64_t count, DType as, void* to) const {
    for (const HfPart& p : t.parts) {
      const int64_t begin = std::max(first, p.first), end = std::min(first + count, p.first + p.count());
      if (begin >= end) continue;
      weights_.read(*weights_.find(p.name), begin - p.first, end - begin, as,
                    static_cast<std::byte*>(to) + static_cast<size_t>(begin - first) * size_of(as));
    }
  }

 private:
  static HfConfig read_config(const fs::path& folder) {
    std::error_code error;
    const fs::path path = folder / "config.json";
    if (!fs::is_directory(folder, error)) fail<UsageError>("{}: is no folder; give the folder of a Hugging Face model", folder.string());
    if (!fs::is_regular_file(path, error)) fail<UsageError>("{}: has no config.json; is it the folder of a model?", folder.string());
    try {
      return parse_hf_config(read_small_file(path, kMaxConfigBytes));
    } catch (const UsageError& e) {
      fail<UsageError>("{}: {}", path.string(), e.what());
    }
  }

  void check(const fs::path& folder) const {
    std::vector<std::string> problems;
    std::set<std::string> known;
    if (config_.model.tied) known.insert(kHfHead);
    for (const HfTensor& t : tensors_)
      for (const HfPart& p : t.parts) {
        known.insert(p.name);
        const HfWeights::Entry* e = weights_.find(p.name);
        if (e == nullptr)
          problems.push_back(fmt::format("{} is missing", p.name));
        else if (e->tensor.shape != p.shape)
          problems.push_back(fmt::format("{} has shape ({}), and ({}) by config.json", p.name, fmt::join(e->tensor.shape, ", "),
                                         fmt::join(p.shape, ", ")));
        else if (!is_weight_type(e->tensor.dtype))
          problems.push_back(
              fmt::format("{} has type {}: weights that are quantized are not supported; F32, BF16 and F16 are", p.name, e->tensor.dtype));
      }
    for (const auto& [name, entry] : weights_.tensors())
      if (!known.contains(name) && !is_frequency_buffer(name)) problems.push_back(fmt::format("{} is no tensor of a Llama", name));
    if (problems.empty()) return;
    constexpr size_t kShown = 50;
    const size_t more = problems.size() - std::min(problems.size(), kShown);
    problems.resize(std::min(problems.size(), kShown));
    fail<UsageError>("{}:\n{}{}", folder.string(), fmt::join(problems, "\n"), more > 0 ? fmt::format("\nand {} more", more) : "");
  }

  // Some tied models are saved with their head all the same.
  void check_tied_head(const fs::path& folder) const {
    const HfWeights::Entry *head = weights_.find(kHfHead), *embedding = weights_.find(kHfEmbedding);
    if (head == nullptr) return;
    const auto differ = [&] {
      fail<UsageError>("{}: config.json says tie_word_embeddings, but {} is not equal to {}", folder.string(), kHfHead, kHfEmbedding);
    };
    if (head->tensor.shape != embedding->tensor.shape || !is_weight_type(head->tensor.dtype)) differ();
    const int64_t all = config_.model.vocab * config_.model.hidden;
    std::vector<float> a(static_cast<size_t>(std::min(all, kCompareAtOnce))), b(a.size());
    for (int64_t first = 0; first < all; first += kCompareAtOnce) {
      const int64_t n = std::min(kCompareAtOnce, all - first);
      weights_.read(*head, first, n, DType::f32, a.data());
      weights_.read(*embedding, first, n, DType::f32, b.data());
      if (std::memcmp(a.data(), b.data(), static_cast<size_t>(n) * sizeof(float)) != 0) differ();
    }
  }

  HfConfig config_;
  HfWeights weights_;
  std::vector<HfTensor> tensors_;
};

CheckpointIndex index_of(const Source& source, const Config& config, const ImportOptions& options) {
  nlohmann::ordered_json record = {{"architecture", source.config().architecture}};
  put_token_ids(record, source.config().ids);
  CheckpointIndex index;
  index.content = CheckpointContent::weights;
  index.hlat = options.hlat;
  index.created = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  index.config = json_text(to_json(config));
  index.run = "import-" + checksum_text(checksum(index.config + index.created));
  index.records.push_back({.name = kImportRecord, .json = json_text(record)});
  for (const HfTensor& t : source.tensors()) {
    index.tensors.push_back(t.tensor);
    index.tensors.back().dtype = options.dtype.value_or(source.dtype(t));
  }
  return index;
}

}  // namespace

ImportResult import_hf(const fs::path& folder, const fs::path& parent, const ImportOptions& options) {
  const Source source(folder);
  ImportResult result;
  result.architecture = source.config().architecture;
  result.notes = source.config().notes;
  result.config.model = source.config().model;
  result.config.train.seq_len = source.config().max_length;
  const CheckpointIndex index = index_of(source, result.config, options);
  for (const SavedTensor& t : index.tensors) {
    result.parameters += t.shape.numel();
    result.bytes += static_cast<uint64_t>(t.shape.numel()) * size_of(t.dtype);
    if (std::find(result.types.begin(), result.types.end(), t.dtype) == result.types.end()) result.types.push_back(t.dtype);
  }
  NewFolder made(parent);
  const auto content = [&](int32_t tensor, int64_t first, int64_t count, void* to) {
    const auto at = static_cast<size_t>(tensor);
    source.read(source.tensors()[at], first, count, index.tensors[at].dtype, to);
  };
  const auto done = [&](uint64_t bytes) {
    if (options.progress) options.progress(bytes, result.bytes);
  };
  const fs::path checkpoint = write_checkpoint(made.filling(), index, content, kMaxFileBytes, done);
  const std::vector<TokenizerFile> files = tokenizer_files_in(folder);
  if (!files.empty()) {
    std::error_code error;
    fs::create_directory(checkpoint / kTokenizerFolder, error);
    copy_files(files, checkpoint / kTokenizerFolder);
    sync_to_disk(checkpoint / kTokenizerFolder);
    sync_to_disk(checkpoint);
  }
  made.commit();
  result.checkpoint = checkpoint_path(parent, 0);
  result.tokenizer = tokenizer_to_load(tokenizer_files_in(result.checkpoint / kTokenizerFolder));
  return result;
}

}  // namespace hlat
