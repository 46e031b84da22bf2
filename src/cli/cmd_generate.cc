// hlat generate: a saved model goes on from a prompt, from lines that are typed, or from a file of prompts.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>

#include "cli/commands.h"
#include "cli/generate_run.h"
#include "cli/print.h"
#include "cli/ranks.h"
#include "cli/seed_option.h"
#include "comm/host_exchange.h"
#include "config/nearest_file.h"
#include "runtime/eval_model.h"
#include "runtime/from_rank_0.h"

namespace hlat {
namespace {

struct GenerateArgs {
  EvalModelOptions model;
  std::optional<std::string> prompt;
  std::string prompt_file, batch;
  TextRequest request{.kind = AskKind::generate, .max_tokens = 0};
  std::optional<uint64_t> seed;
  std::string bos = "auto";
  GenerateOutput output;

  bool has_prompt() const { return prompt || !prompt_file.empty() || !batch.empty(); }
};

std::string read_all(std::istream& in) { return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}; }

std::string read_file(const std::string& path, const char* option) {
  if (std::filesystem::is_directory(path)) fail<UsageError>("{} {}: a folder", option, path);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail<UsageError>("{} {}: cannot be read: {}{}", option, path, std::strerror(errno), file_hint(path));
  return read_all(file);
}

// Editors end a file with a line break that is no part of the text.
std::string without_last_break(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// The prompt, or all lines of a batch.
std::string read_input(const GenerateArgs& args) {
  if (!args.output.file.empty()) check_output(args.output);
  if (!args.batch.empty()) return read_file(args.batch, "--batch");
  if (args.prompt) return *args.prompt;
  if (!args.prompt_file.empty() && args.prompt_file != "-") return without_last_break(read_file(args.prompt_file, "--prompt-file"));
  std::string text = without_last_break(read_all(std::cin));
  if (text.empty()) throw UsageError("there is no prompt: give --prompt, --prompt-file or --batch, or type one in a terminal");
  return text;
}

std::vector<PromptLine> prompts(const GenerateArgs& args, const TextRequest& request, Comm& world) {
  const std::string text = from_rank_0(world, [&] { return read_input(args); });
  if (!args.batch.empty()) return read_prompt_lines(text, args.batch, request);
  PromptLine line{.request = request};
  line.request.context = text;
  return {line};
}

// Prompts of a batch that an earlier call has answered.
size_t answered(const GenerateArgs& args, const std::vector<PromptLine>& lines, Comm& world) {
  if (!args.output.goes_on) return 0;
  const std::string& file = args.output.file;
  return std::stoull(from_rank_0(world, [&] {
    if (!std::filesystem::exists(file)) return std::string("0");
    const size_t count = count_answers(read_file(file, "--out"), file, lines);
    cut_to_whole_lines(file);
    return std::to_string(count);
  }));
}

// What a user asked for that changes nothing, because no text is drawn; empty: nothing.
std::string without_effect(const GenerateArgs& args, const std::vector<PromptLine>& lines) {
  const auto drawn = [](const Sampling& s) { return s.temperature > 0; };
  if (drawn(args.request.sampling) ||
      std::any_of(lines.begin(), lines.end(), [&](const PromptLine& l) { return drawn(l.request.sampling); }))
    return "";
  const auto any = [&](auto Sampling::*value) {
    const auto given = [&](const TextRequest& r) { return r.sampling.*value != Sampling{}.*value; };
    return given(args.request) || std::any_of(lines.begin(), lines.end(), [&](const PromptLine& l) { return given(l.request); });
  };
  std::vector<std::string> names;
  if (any(&Sampling::top_k)) names.emplace_back("top-k");
  if (any(&Sampling::top_p)) names.emplace_back("top-p");
  if (any(&Sampling::min_p)) names.emplace_back("min-p");
  if (args.seed) names.emplace_back("seed");
  if (names.empty()) return "";
  return fmt::format("warning: the temperature is 0, so the likeliest token is taken: {} change{} nothing\n", fmt::join(names, ", "),
                     names.size() == 1 ? "s" : "");
}

// Requests of a model that reads `max_length` tokens.
void check_lengths(const GenerateArgs& args, const TextRequest& request, const std::vector<PromptLine>& lines, int64_t max_length) {
  if (args.batch.empty()) return check_request(request, max_length);
  check_prompt_lines(lines, args.batch, [&](const TextRequest& r) { check_request(r, max_length); });
}

void run_rank(const GenerateArgs& args, Session& session, EvalSignals& signals) {
  Comm& world = session.world();
  TextRequest request = args.request;
  request.sampling.seed = broadcast_value(world, args.seed ? *args.seed : uint64_t{std::random_device{}()}, 0);
  const bool typed = broadcast_value(world, !args.has_prompt() && isatty(STDIN_FILENO) != 0, 0);
  const std::vector<PromptLine> lines = typed ? std::vector<PromptLine>{} : prompts(args, request, world);
  const size_t done = answered(args, lines, world);
  if (done > 0 && session.rank() == 0) print_err(fmt::format("{} of {} prompts are answered already\n", done, lines.size()));
  if (done > 0 && done == lines.size()) return;
  if (session.rank() == 0) print_err(without_effect(args, lines));
  EvalModelOptions options = args.model;
  options.check_length = [&](int64_t max_length) { check_lengths(args, request, lines, max_length); };
  EvalModel model(options, session, [](const std::string& line) { print_err(line + "\n"); });
  const RunTokenizer& tokenizer = model.tokenizer();
  const EncodingRules rules{.bos = args.bos == "auto" ? tokenizer.adds_bos() : args.bos == "on",
                            .begin = tokenizer.bos(),
                            .end = tokenizer.eos(),
                            .max_length = model.model().max_length()};
  Completer completer(model.model(), tokenizer.get(), rules);
  GenerateRun run(completer, tokenizer.get(), session, signals, args.output);
  const auto check = [&](const TextRequest& r) { completer.check(r); };
  if (typed) {
    run.converse(request);
  } else if (args.batch.empty()) {
    check(lines.front().request);
    run.one(lines.front());
  } else {
    check_prompt_lines(lines, args.batch, check);
    run.batch(lines, done);
  }
  const bool drawn = request.sampling.temperature > 0 && !args.seed;
  if (session.rank() == 0) print_err(run.speed() + (drawn ? fmt::format(", --seed {}\n", request.sampling.seed) : "\n"));
}

void run_generate(const GenerateArgs& args) {
  for (const std::string& word : args.model.overrides)
    if (word.find('=') == std::string::npos) fail<UsageError>("'{0}' is no section.key=value; a prompt is given as --prompt '{0}'", word);
  check_request(args.request, 0);
  const Launch launch = this_launch();
  EvalSignals signals(launch, "");
  Session session = start_session(launch, ParallelConfig{});
  run_on_ranks(session, Config{}, 0, [&] { run_rank(args, session, signals); });
}

void add_model_options(CLI::App& command, GenerateArgs& args) {
  EvalModelOptions& model = args.model;
  command.add_option("--checkpoint", model.checkpoint, "a checkpoint, or a run folder: its latest one")->required()->type_name("CKPT");
  command.add_option("--step", model.step, "the checkpoint of this step, in a run folder")->type_name("N");
  command.add_option("--tokenizer", model.tokenizer, "another tokenizer file than the checkpoint's")->type_name("FILE");
  command.add_option("--max-length", model.max_length, "tokens that the model reads at a time; default: as it was trained")
      ->check(within(int64_t{2}, int64_t{1} << 30))
      ->type_name("N");
  command.add_option("--bos", args.bos, "begin prompts with the token that begins documents: on, off, or auto, as the model was trained")
      ->check(CLI::IsMember({"auto", "on", "off"}).description(""))
      ->type_name("WHEN");
  command.add_option("overrides", model.overrides, "keys of the config, such as parallel.tp=2 or device.backend=cpu")
      ->type_name("SECTION.KEY=VALUE");
}

void add_prompt_options(CLI::App& command, GenerateArgs& args) {
  CLI::Option* prompt =
      command.add_option("--prompt", args.prompt, "the text to continue; default: lines that are typed, or standard input");
  CLI::Option* file = command.add_option("--prompt-file", args.prompt_file, "a file with the text to continue; -: standard input");
  CLI::Option* batch = command.add_option("--batch", args.batch, "a file of prompts, one JSON object per line (docs/generation.md)");
  CLI::Option* out = command.add_option("--out", args.output.file, "a new file for the texts of --batch; default: standard output");
  CLI::Option* go_on = command.add_flag("--continue", args.output.goes_on, "continue after the texts that --out has");
  CLI::Option* json = command.add_flag("--json", args.output.json, "print one JSON object when the text is complete");
  prompt->type_name("TEXT")->excludes(file)->excludes(batch);
  file->type_name("FILE")->excludes(batch);
  batch->type_name("FILE")->excludes(json);
  out->type_name("FILE")->needs(batch);
  go_on->needs(out);
  command.add_flag("--logprobs", args.output.logprobs, "add the logarithm of each token's probability");
}

void add_sampling_options(CLI::App& command, GenerateArgs& args) {
  Sampling& sampling = args.request.sampling;
  command
      .add_option("--max-tokens", args.request.max_tokens,
                  fmt::format("new tokens, at most; default: {}, or what there is room for", kUsualLength))
      ->check(within(int64_t{1}, int64_t{1} << 30))
      ->type_name("N");
  command.add_option("--temperature", sampling.temperature, "sampling temperature; 0, the default: always the likeliest token")
      ->type_name("X");
  command.add_option("--top-k", sampling.top_k, "sample from the K likeliest tokens; 0: from all")->type_name("K");
  command.add_option("--top-p", sampling.top_p, "sample from the likeliest tokens that together have probability P; 1: from all")
      ->type_name("P");
  command.add_option("--min-p", sampling.min_p, "leave out tokens with less than this share of the likeliest one's probability")
      ->type_name("P");
  command.add_option("--repetition-penalty", sampling.repetition_penalty, "make tokens of the prompt and the text less likely; 1: off")
      ->type_name("X");
  command.add_option("--seed", args.seed, "the same seed gives the same text; default: a new one each time, which is printed")
      ->check(seed_number())
      ->type_name("N");
  command.add_option("--stop", args.request.stop, "end the text before this string; may be given several times")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

void add_generate_command(CLI::App& app) {
  const auto args = std::make_shared<GenerateArgs>();
  CLI::App* command = app.add_subcommand("generate", "generate text from a checkpoint");
  add_model_options(*command, *args);
  add_prompt_options(*command, *args);
  add_sampling_options(*command, *args);
  show_example(*command, "hlat generate --checkpoint runs/try --prompt 'Once upon a time' --max-tokens 100 --temperature 0.8");
  command->callback([args] { run_generate(*args); });
}

}  // namespace hlat
