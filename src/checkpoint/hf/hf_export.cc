#include "checkpoint/hf/hf_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "checkpoint/hf/hf_tensors.h"
#include "checkpoint/hf/hf_weights.h"
#include "checkpoint/hf/new_folder.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/state_source.h"

namespace hlat {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kExportAtOnce = 1 << 20;  // elements

// One tensor of the export, and where its elements are in the checkpoint.
struct Item {
  HfPart part;
  int32_t tensor = 0;
};
using Shard = std::vector<Item>;

uint64_t bytes_of(const Item& item, DType dtype) { return static_cast<uint64_t>(item.part.count()) * size_of(dtype); }

// The saved tensor that elements of this type are made of.
int32_t find_tensor(const CheckpointIndex& index, const SavedTensor& wanted, DType dtype) {
  const auto master = dtype == DType::f32 ? index.find(StateKind::master, wanted.name) : std::nullopt;
  const auto found = master ? master : index.find(StateKind::weight, wanted.name);
  if (!found) fail<UsageError>("the checkpoint has no weights of {}, which its config's model has", wanted.name);
  const Shape& shape = index.tensors[static_cast<size_t>(*found)].shape;
  if (!(shape == wanted.shape))
    fail<UsageError>("{} has shape {} in the checkpoint and {} in its config's model", wanted.name, shape.str(), wanted.shape.str());
  return *found;
}

std::vector<Shard> share_out(const CheckpointIndex& index, const std::vector<HfTensor>& tensors, const ExportOptions& options) {
  std::vector<Shard> shards(1);
  uint64_t bytes = 0;
  for (const HfTensor& t : tensors) {
    const int32_t from = find_tensor(index, t.tensor, options.dtype);
    for (const HfPart& part : t.parts) {
      Item item{.part = part, .tensor = from};
      const uint64_t n = bytes_of(item, options.dtype);
      if (bytes > 0 && bytes + n > options.shard_bytes) shards.emplace_back(), bytes = 0;
      bytes += n;
      shards.back().push_back(std::move(item));
    }
  }
  return shards;
}

void check_all_used(const CheckpointIndex& index, const std::vector<HfTensor>& tensors) {
  for (const SavedTensor& t : index.tensors)
    if (std::none_of(tensors.begin(), tensors.end(), [&](const HfTensor& of) { return of.tensor.name == t.name; }))
      fail<UsageError>("the checkpoint has {} {}, which its config's model has not", name_of(t.kind), t.name);
}

std::string shard_name(size_t number, size_t of) {
  return of == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", number + 1, of);
}

class Writer {
 public:
  Writer(CheckpointReader& reader, const ExportOptions& options, uint64_t all)
      : reader_(reader), options_(options), all_(all), saved_(kExportAtOnce * sizeof(float)), out_(saved_.size()) {}

  void shard(const fs::path& path, const Shard& shard) {
    SafetensorsHeader header;
    header.metadata = {{"format", "pt"}};
    uint64_t at = 0;
    for (const Item& item : shard) {
      const uint64_t end = at + bytes_of(item, options_.dtype);
      header.tensors.push_back({.name = item.part.name,
                                .dtype = std::string(safetensors_name(options_.dtype)),
                                .shape = item.part.shape,
                                .begin = at,
                                .end = end});
      at = end;
    }
    NewFile file(path);
    file.write(header.save());
    for (const Item& item : shard) elements(file, item);
    file.finish();
  }

 private:
  void elements(NewFile& file, const Item& item) {
    const DType type = reader_.index().tensors[static_cast<size_t>(item.tensor)].dtype;
    for (int64_t first = 0; first < item.part.count(); first += kExportAtOnce) {
      const int64_t n = std::min(kExportAtOnce, item.part.count() - first);
      const size_t bytes = static_cast<size_t>(n) * size_of(options_.dtype);
      reader_.read(item.tensor, item.part.first + first, n, saved_.data());
      convert_elements(out_.data(), options_.dtype, saved_.data(), type, n);
      file.write(out_.data(), bytes);
      if (options_.progress) options_.progress(bytes, all_);
    }
  }

  CheckpointReader& reader_;
  const ExportOptions& options_;
  uint64_t all_;
  std::vector<std::byte> saved_, out_;
};

void write_json(const fs::path& path, const nlohmann::ordered_json& json) {
  NewFile file(path);
  file.write(json_text(json, 2) + "\n");
  file.finish();
}

// What was rounded, or cannot be more exact than it is.
void note_types(const CheckpointIndex& index, DType dtype, std::vector<std::string>& notes) {
  const auto has = [&](StateKind kind, DType type) {
    return std::any_of(index.tensors.begin(), index.tensors.end(), [&](const SavedTensor& t) { return t.kind == kind && t.dtype == type; });
  };
  if (dtype == DType::bf16 && has(StateKind::weight, DType::f32)) notes.emplace_back("f32 weights are rounded to bf16, to the nearest");
  if (dtype == DType::f32 && has(StateKind::master, DType::f32)) notes.emplace_back("the f32 masters are exported");
  if (dtype == DType::f32 && !has(StateKind::master, DType::f32) && has(StateKind::weight, DType::bf16))
    notes.emplace_back("there are no f32 masters: bf16 weights are written as f32");
}

}  // namespace

ExportResult export_hf(CheckpointReader& reader, const Config& config, const fs::path& to, const ExportOptions& options) {
  const std::vector<HfTensor> tensors = hf_tensors(config.model);
  check_all_used(reader.index(), tensors);
  const std::vector<Shard> shards = share_out(reader.index(), tensors, options);
  ExportResult result;
  for (const Shard& shard : shards)
    for (const Item& item : shard) result.parameters += item.part.count(), result.bytes += bytes_of(item, options.dtype);
  note_types(reader.index(), options.dtype, result.notes);
  NewFolder made(to);
  Writer writer(reader, options, result.bytes);
  nlohmann::ordered_json places = nlohmann::ordered_json::object();
  for (size_t i = 0; i < shards.size(); ++i) {
    result.weight_files.push_back(shard_name(i, shards.size()));
    writer.shard(made.filling() / result.weight_files.back(), shards[i]);
    for (const Item& item : shards[i]) places[item.part.name] = result.weight_files.back();
  }
  if (shards.size() > 1)
    write_json(made.filling() / "model.safetensors.index.json", {{"metadata", {{"total_size", result.bytes}}}, {"weight_map", places}});
  const HfModel model{.model = config.model,
                      .max_length = options.max_length > 0 ? options.max_length : config.train.seq_len,
                      .dtype = options.dtype,
                      .ids = options.ids};
  write_json(made.filling() / "config.json", hf_config_json(model));
  copy_files(options.files, made.filling());
  const bool has_generation =
      std::any_of(options.files.begin(), options.files.end(), [](const TokenizerFile& f) { return f.name == kGenerationConfig; });
  if (!has_generation) write_json(made.filling() / kGenerationConfig, hf_generation_json(options.ids));
  made.commit();
  return result;
}

}  // namespace hlat
