// hlat ckpt import: the weights of a Hugging Face folder as a checkpoint of weights alone, which checkpoint.init_from takes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>

#include "base/format.h"
#include "base/json_text.h"
#include "checkpoint/hf/hf_import.h"
#include "cli/ckpt_args.h"
#include "cli/ckpt_commands.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/version.h"
#include "cli/work_shown.h"
#include "config/print.h"

namespace hlat {
namespace {

struct ImportArgs {
  std::string source, parent, dtype;
  bool json = false;
};

// The keys that a run has to have to start with these weights.
std::string config_lines(const ImportArgs& args, const ImportResult& result) {
  const nlohmann::ordered_json config = to_json(result.config);
  std::string text = "model:\n";
  for (const auto& [key, value] : config["model"].items())
    if (key != "preset") text += fmt::format("  {}: {}\n", key, value.is_string() ? value.get<std::string>() : json_text(value));
  text += fmt::format("train: {{seq_len: {}}}  # at most\n", result.config.train.seq_len);
  const auto quoted = [](const std::string& path) { return json_text(nlohmann::json(path)); };
  if (!result.tokenizer.empty()) text += fmt::format("data: {{tokenizer: {}}}\n", quoted(result.tokenizer.string()));
  return text + fmt::format("checkpoint: {{init_from: {}}}\n", quoted(args.parent));
}

void print_result(const ImportArgs& args, const ImportResult& result) {
  std::vector<std::string_view> types;
  for (const DType t : result.types) types.push_back(name_of(t));
  if (args.json) {
    const nlohmann::ordered_json json = {{"checkpoint", result.checkpoint.string()},
                                         {"architecture", result.architecture},
                                         {"parameters", result.parameters},
                                         {"bytes", result.bytes},
                                         {"dtypes", types},
                                         {"tokenizer", result.tokenizer.string()},
                                         {"notes", result.notes},
                                         {"model", to_json(result.config)["model"]},
                                         {"max_length", result.config.train.seq_len}};
    return print_out(json_text(json, 2) + "\n");
  }
  print_out(fmt::format("{}: {}, {} parameters, {}, {}{}\n", result.checkpoint.string(), result.architecture,
                        format_count(static_cast<double>(result.parameters)), fmt::join(types, " and "), format_bytes(result.bytes),
                        result.tokenizer.empty() ? "; the folder has no tokenizer" : ""));
  for (const std::string& note : result.notes) print_out(fmt::format("note: {}\n", note));
  print_out("A run starts with it when its config has\n\n" + config_lines(args, result));
}

void run_import(const ImportArgs& args) {
  ImportOptions options{.dtype = {}, .hlat = version()};
  if (!args.dtype.empty()) options.dtype = args.dtype == "f32" ? DType::f32 : DType::bf16;
  std::optional<WorkShown> shown;
  options.progress = [&](uint64_t more, uint64_t all) {
    if (!shown) shown.emplace("importing " + args.source, all);
    shown->add(more);
  };
  const ImportResult result = import_hf(args.source, args.parent, options);
  shown.reset();
  print_result(args, result);
}

}  // namespace

void add_ckpt_import(CLI::App& ckpt) {
  const auto args = std::make_shared<ImportArgs>();
  CLI::App* command = ckpt.add_subcommand("import", "a Hugging Face folder (Llama, Mistral) as a checkpoint of weights");
  command->add_option("source", args->source, "folder with config.json and safetensors files")->required()->type_name("SRC");
  command->add_option("folder", args->parent, "the folder that is made and gets step_0; checkpoint.init_from takes it")
      ->required()
      ->type_name("DST");
  command->add_option("--dtype", args->dtype, "bf16 or f32 for all tensors; default: as they are, f16 as f32")
      ->check(CLI::IsMember({"bf16", "f32"}).description(""))
      ->type_name("TYPE");
  command->add_flag("--json", args->json, "print one JSON object");
  show_example_and_memory(*command, "hlat ckpt import ~/models/Llama-3.2-1B imported/llama-1b",
                          "32 MiB, and the headers of the files; whatever the size of the model");
  command->callback([args] { run_import(*args); });
}

}  // namespace hlat
