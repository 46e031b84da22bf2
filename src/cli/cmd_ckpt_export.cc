// hlat ckpt export: a checkpoint as a folder that Hugging Face's `transformers` opens.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/format.h"
#include "base/json_text.h"
#include "checkpoint/find_checkpoint.h"
#include "checkpoint/hf/hf_export.h"
#include "checkpoint/hf/hf_import.h"
#include "cli/ckpt_args.h"
#include "cli/ckpt_commands.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/work_shown.h"
#include "config/saved.h"
#include "data/tokenizer/tokenizer.h"
#include "param/param_names.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;

struct ExportArgs {
  std::string checkpoint, to;
  std::optional<int64_t> step;
  std::string dtype = "bf16";
  int64_t max_length = 0;
  uint64_t shard_bytes = ExportOptions{}.shard_bytes;
  bool json = false;
};

// The config of the run. One whose model has keys that this version does not know is another model.
Config saved_config(const CheckpointReader& reader) {
  SavedConfig saved = config_from_json(Json::parse(reader.index().config));
  for (const std::string& key : saved.unknown)
    if (key.starts_with("model."))
      fail<UsageError>("{}: its config has {}, which this version of hlat does not know", reader.folder().string(), key);
  const auto embedding = reader.index().find(StateKind::weight, kEmbeddingName);
  if (saved.config.model.vocab == 0 && embedding)  // auto
    saved.config.model.vocab = reader.index().tensors[static_cast<size_t>(*embedding)].shape[0];
  return saved.config;
}

std::vector<TokenizerFile> find_tokenizer(const CheckpointReader& reader, const std::string& configured, std::vector<std::string>& notes) {
  std::vector<TokenizerFile> files = tokenizer_files_in(reader.folder() / kTokenizerFolder);
  if (tokenizer_to_load(files).empty())
    for (TokenizerFile& more : tokenizer_files_of(configured))
      if (std::none_of(files.begin(), files.end(), [&](const TokenizerFile& f) { return f.name == more.name; }))
        files.push_back(std::move(more));
  if (tokenizer_to_load(files).empty())
    notes.push_back(configured.empty() ? "there is no tokenizer to export: the run named none"
                                       : fmt::format("there is no tokenizer to export: data.tokenizer {} is not there", configured));
  return files;
}

// As the imported model had them, else as the tokenizer has them.
TokenIds token_ids(const CheckpointReader& reader, const std::vector<TokenizerFile>& files, std::vector<std::string>& notes) {
  if (const Record* record = reader.index().find_record(kImportRecord)) return token_ids_of(nlohmann::json::parse(record->json));
  TokenIds ids;
  const std::string path = tokenizer_to_load(files).string();
  if (path.empty()) return ids;
  try {
    const auto tokenizer = load_tokenizer(path);
    if (const auto id = tokenizer->bos()) ids.bos = {*id};
    if (const auto id = tokenizer->eos()) ids.eos = {*id};
  } catch (const Error& e) {  // the export is as good without them
    notes.push_back(fmt::format("bos_token_id and eos_token_id are left out: {}", e.what()));
  }
  return ids;
}

void print_result(const ExportArgs& args, const std::string& from, const ExportResult& result, const ExportOptions& options) {
  std::vector<std::string> files;
  for (const TokenizerFile& f : options.files) files.push_back(f.name);
  if (args.json) {
    const Json json = {{"folder", args.to},        {"checkpoint", from},   {"parameters", result.parameters},
                       {"bytes", result.bytes},    {"dtype", args.dtype},  {"weight_files", result.weight_files},
                       {"tokenizer_files", files}, {"notes", result.notes}};
    return print_out(json_text(json, 2) + "\n");
  }
  print_out(fmt::format("{}: {} parameters of {}, {}, {} in {} file{}\n", args.to, format_count(static_cast<double>(result.parameters)),
                        from, args.dtype, format_bytes(result.bytes), result.weight_files.size(),
                        result.weight_files.size() == 1 ? "" : "s"));
  if (!files.empty()) print_out(fmt::format("with {}\n", fmt::join(files, ", ")));
  for (const std::string& note : result.notes) print_out(fmt::format("note: {}\n", note));
}

void run_export(const ExportArgs& args) {
  const std::filesystem::path from = find_checkpoint(args.checkpoint, args.step);
  CheckpointReader reader(from, kExportCache);
  const Config config = saved_config(reader);
  std::vector<std::string> notes;
  ExportOptions options{.dtype = args.dtype == "f32" ? DType::f32 : DType::bf16,
                        .max_length = args.max_length,
                        .shard_bytes = args.shard_bytes,
                        .ids = {},
                        .files = find_tokenizer(reader, config.data.tokenizer, notes)};
  options.ids = token_ids(reader, options.files, notes);
  std::optional<WorkShown> shown;
  options.progress = [&](uint64_t more, uint64_t all) {
    if (!shown) shown.emplace("exporting " + from.string(), all);
    shown->add(more);
  };
  ExportResult result = export_hf(reader, config, args.to, options);
  shown.reset();
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  print_result(args, from.string(), result, options);
}

}  // namespace

void add_ckpt_export(CLI::App& ckpt) {
  const auto args = std::make_shared<ExportArgs>();
  CLI::App* command = ckpt.add_subcommand("export", "a checkpoint as a Hugging Face Llama folder");
  command->add_option("checkpoint", args->checkpoint, "a checkpoint (.../step_N), or a run folder: its latest")
      ->required()
      ->type_name("CKPT");
  command->add_option("folder", args->to, "the folder that is made")->required()->type_name("DST");
  command->add_option("--step", args->step, "this step of a run folder instead of the latest")
      ->check(within(int64_t{0}, int64_t{1} << 56))
      ->type_name("N");
  command->add_option("--dtype", args->dtype, "bf16, or f32: from the masters where there are any; default: bf16")
      ->check(CLI::IsMember({"bf16", "f32"}).description(""))
      ->type_name("TYPE");
  command->add_option("--max-length", args->max_length, "max_position_embeddings; default: train.seq_len of the run")
      ->check(within(int64_t{1}, int64_t{1} << 30))
      ->type_name("TOKENS");
  command->add_option("--shard-size", args->shard_bytes, "largest file of weights, such as 500MB; default: 5GB")
      ->transform(CLI::AsSizeValue(true).description(""))
      ->type_name("SIZE");
  command->add_flag("--json", args->json, "print one JSON object");
  show_example_and_memory(*command, "hlat ckpt export runs/nano nano-hf",
                          "at most 320 MiB, and the checkpoint's index; whatever the size of the model");
  command->callback([args] { run_export(*args); });
}

}  // namespace hlat
