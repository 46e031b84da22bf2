// hlat eval: tasks on saved models, the tasks there are, and models compared.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/exit_code.h"
#include "base/json_text.h"
#include "checkpoint/find_checkpoint.h"
#include "cli/commands.h"
#include "cli/eval_all.h"
#include "cli/eval_compare.h"
#include "cli/eval_list.h"
#include "cli/eval_run.h"
#include "cli/eval_table.h"
#include "cli/print.h"
#include "cli/ranks.h"
#include "cli/seed_option.h"
#include "eval/results_file.h"
#include "runtime/from_rank_0.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;

// Words that are not options: the model and keys of the config.
EvalArgs with_words(EvalArgs args) {
  for (const std::string& word : args.words) {
    if (word.find('=') != std::string::npos)
      args.model.overrides.push_back(word);
    else if (args.model.checkpoint.empty())
      args.model.checkpoint = word;
    else
      fail<UsageError>("{}: {} is given already; hlat eval takes one model or run", word, args.model.checkpoint);
  }
  return args;
}

// One checkpoint. Whether all tasks have results, on rank 0.
bool evaluate_one(const EvalArgs& args, Session& session, EvalSignals& signals) {
  const fs::path checkpoint =
      from_rank_0(session.world(), [&] { return find_checkpoint(args.model.checkpoint, args.model.step).string(); });
  EvalRun run(args, checkpoint, session, signals);
  const fs::path out = args.out.empty() ? default_folder(checkpoint) : fs::path(args.out);
  const Evaluated evaluated = run.run(checkpoint, out);
  bool good = true;
  if (session.rank() == 0) {
    for (const TaskScores& t : evaluated.results.tasks) good = good && t.error.empty();
    if (args.json) print_out(json_text(to_json(evaluated.results), 2) + "\n");
    if (!args.json && !evaluated.results.tasks.empty()) print_out(results_text(evaluated.results));
    print_err(fmt::format("{} in {}{}\n", kResultsName, out.string(), evaluated.stopped ? "; the same command continues" : ""));
  }
  if (evaluated.stopped) throw Interrupted(signals.asked(), "the same command continues", true);
  return good;
}

void run_ranks(const EvalArgs& args) {
  const Launch launch = this_launch();
  EvalSignals signals(launch);
  Session session = start_session(launch, ParallelConfig{});
  bool good = true;
  int signal = 0;
  run_on_ranks(session, Config{}, 0, [&] {
    try {
      good = args.all ? evaluate_all(args, session, signals) : evaluate_one(args, session, signals);
    } catch (const Interrupted& e) {  // on all ranks, which then part in peace
      signal = e.signal;
    }
  });
  if (signal != 0) throw Interrupted(signal, "the same command continues", true);
  if (!good) throw CLI::RuntimeError(kFailed);
}

void run_eval(const EvalArgs& given) {
  const EvalArgs args = with_words(given);
  if (args.list) return list_tasks(args);
  if (!args.show.empty()) return show_task(args);
  if (!args.compare.empty()) return compare_models(args);
  if (args.model.checkpoint.empty()) throw UsageError("which model? --checkpoint names a checkpoint or a run folder");
  run_ranks(args);
}

// --list, --show and --compare each do one thing. What has no meaning for it is refused: an option that is ignored misleads.
void check_options(const CLI::App& command) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> modes = {
      {"--list", {"--data", "--task-dir", "--limit", "--shots", "--json"}},
      {"--show", {"--data", "--task-dir", "--shots", "--fewshot-seed", "--seed", "--json"}},
      {"--compare", {"--json"}}};
  for (const auto& [mode, takes] : modes) {
    if (command.count(mode) == 0) continue;
    std::vector<std::string> others;
    for (const CLI::Option* option : command.get_options()) {
      const std::string name = option->get_name();
      const bool meant = name == mode || option->get_positional() || std::find(takes.begin(), takes.end(), name) != takes.end();
      if (option->count() > 0 && !meant) others.push_back(name);
    }
    if (!others.empty()) fail<UsageError>("{} goes without {}", mode, fmt::join(others, " and "));
  }
  if (command.count("--all") > 0 && command.count("--step") > 0)
    throw UsageError("--all evaluates all checkpoints of a run, --step one of them: give one of the two");
}

void add_model_options(CLI::App& command, EvalArgs& args) {
  EvalModelOptions& model = args.model;
  command.add_option("--checkpoint", model.checkpoint, "a checkpoint, or a run folder: its latest one")->type_name("CKPT");
  command.add_option("--step", model.step, "the checkpoint of this step, in a run folder")->type_name("N");
  command.add_flag("--all", args.all, "all checkpoints of a run folder, and the curve of their results");
  command.add_option("--tokenizer", model.tokenizer, "another tokenizer file than the checkpoint's")->type_name("FILE");
  command.add_option("--max-length", model.max_length, "tokens that the model reads at a time; default: as it was trained")
      ->check(within(int64_t{2}, int64_t{1} << 30))
      ->type_name("N");
  command.add_option("--bos", args.bos, "begin texts with the token that begins documents: on, off, or auto, as the model was trained")
      ->check(CLI::IsMember({"auto", "on", "off"}).description(""))
      ->type_name("WORD");
  command
      .add_option("words", args.words, "a checkpoint or run folder, and keys of the config, such as parallel.tp=2 or device.backend=cpu")
      ->type_name("CKPT|SECTION.KEY=VALUE");
}

void add_task_options(CLI::App& command, EvalArgs& args) {
  command.add_option("--tasks", args.tasks, "names of tasks or groups, or YAML files, separated by commas")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("A,B");
  command.add_option("--data", args.data, "the folder with the files of evaluation data")->type_name("DIR");
  command.add_option("--task-dir", args.task_dir, "a folder with tasks of your own, one YAML file each")->type_name("DIR");
  command
      .add_option("--limit", args.limit,
                  "only the first N examples of each task or subtask; 0: all; default: eval.limit of the checkpoint's config")
      ->check(within(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->type_name("N");
  command.add_option("--shots", args.shots, "examples before each question; default: as each task says")
      ->check(within(int64_t{0}, int64_t{1000}))
      ->type_name("K");
  command.add_option("--fewshot-seed", args.fewshot_seed, "seed for the choice of those examples")->check(seed_number())->type_name("N");
  command.add_option("--seed", args.seed, "seed of sampled texts")->check(seed_number())->type_name("N");
  command.add_flag("--allow-code-execution", args.allow_code, "run programs that the model wrote, in a sandbox (HumanEval)");
  command.add_flag("--list", args.list, "show the tasks there are; with --data their sizes and what is missing");
  command.add_option("--show", args.show, "show one task; with --data its first example")->type_name("TASK");
}

}  // namespace

void add_eval_command(CLI::App& app) {
  const auto args = std::make_shared<EvalArgs>();
  CLI::App* command = app.add_subcommand("eval", "evaluate saved models on tasks, and compare them");
  add_model_options(*command, *args);
  add_task_options(*command, *args);
  command->add_option("--out", args->out, "folder of results and samples; default: eval/step_N in the run folder")->type_name("DIR");
  command
      ->add_option("--compare", args->compare,
                   "models side by side: files of results, published, or published:NAME; the first against the others")
      ->expected(1, 1000)
      ->type_name("JSON...");
  command->add_flag("--json", args->json, "print one JSON object");
  show_example(*command, "hlat eval --checkpoint runs/try --tasks CR,mmlu --data data/eval --limit 100");
  command->callback([args, command] {
    check_options(*command);
    run_eval(*args);
  });
}

}  // namespace hlat
