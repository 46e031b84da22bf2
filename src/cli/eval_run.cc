#include "cli/eval_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <thread>

#include "base/format.h"
#include "base/machine.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/hf/tokenizer_files.h"
#include "cli/eval_shown.h"
#include "cli/eval_table.h"
#include "cli/print.h"
#include "cli/version.h"
#include "comm/host_exchange.h"
#include "config/precision_row.h"
#include "data/tokenizer/tokenizer.h"
#include "runtime/from_rank_0.h"
#include "train/state_records.h"

namespace hlat {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What a checkpoint knows of its tokenizer: a run's that of its data, an imported model's the file that came with it. One that a user names
// may be another file of the same: a warning then, empty where all is well.
std::string check_tokenizer(const EvalModel& model, bool given) {
  const RunTokenizer& used = model.tokenizer();
  const fs::path own = tokenizer_to_load(tokenizer_files_in(model.folder() / kTokenizerFolder));
  uint64_t known = used.get().fingerprint();
  if (model.index().find_record("data") != nullptr)
    known = saved_position(model.index()).identity.tokenizer;
  else if (given && !own.empty())
    known = load_tokenizer(own.string())->fingerprint();
  if (known == used.get().fingerprint()) return "";
  const std::string words =
      fmt::format("the tokenizer {} is not the one that {} was trained with: its content differs", used.name(), model.folder().string());
  if (!given) throw UsageError(words + "; --tokenizer names another file");
  return words;
}

std::string model_name(const fs::path& checkpoint) {
  const fs::path parent = fs::absolute(checkpoint).lexically_normal().parent_path();
  const bool inside = parent.filename() == "checkpoints" || parent.filename() == "weights";
  return fmt::format("{} {}", (inside ? parent.parent_path() : parent).filename().string(), checkpoint.filename().string());
}

Json header_of(EvalModel& model, const EvalArgs& args, const TaskOptions& options, const EncodingRules& rules) {
  const Config& config = model.config();
  const ParallelConfig& p = config.parallel;
  return {{"config",
           {{"model", "hlat"},
            {"checkpoint", fs::absolute(model.folder()).string()},
            {"run", model.index().run},
            {"step", model.index().step},
            {"tokens_seen", model.index().tokens},
            {"loss", model.index().loss ? Json(*model.index().loss) : Json()},
            {"parameters", model.plan().parameters},
            {"tokenizer", model.tokenizer().name()},
            {"tokenizer_fingerprint", fmt::format("{:016x}", model.tokenizer().get().fingerprint())},
            {"bos", rules.bos},
            {"max_length", rules.max_length},
            {"precision", precision_words(config)},
            {"mesh", {{"dp", p.dp}, {"tp", p.tp}, {"pp", p.pp}}},
            {"num_fewshot", args.shots ? Json(*args.shots) : Json()},
            {"fewshot_seed", args.fewshot_seed},
            {"seed", args.seed},
            {"data", fs::absolute(options.data).string()}}},
          {"date", std::time(nullptr)},
          {"hlat_version", version()}};
}

}  // namespace

EvalRun::EvalRun(const EvalArgs& args, const fs::path& checkpoint, Session& session, EvalSignals& signals)
    : args_(args), session_(session), signals_(signals) {
  from_rank_0(session.world(), [&] {
    tasks_ = std::make_unique<EvalTasks>(args, checkpoint);
    return std::string();
  });
}

std::string EvalRun::done_text(const TaskResult& result, double seconds) const {
  if (!result.error.empty()) return fmt::format("{}: failed: {}\n", result.info.name, result.error);
  const TaskScores scores = scores_of(result);
  const MetricResult& m = scores.metrics[scores.headline];
  int64_t reused = 0;
  for (const SubtaskResult& s : result.subtasks) reused += s.reused;
  std::string notes = scores.examples < scores.available ? tasks_->limit_setting() : "";
  if (reused > 0) notes += fmt::format("{}{} of an earlier run", notes.empty() ? "" : ", ", reused);
  const std::string error = error_text(m);
  return fmt::format("{}: {} {}{}, {} examples{} in {}\n", result.info.name, m.label(), value_text(m), error.empty() ? "" : " +- " + error,
                     examples_text(scores), notes.empty() ? "" : " (" + notes + ")", format_duration(seconds));
}

TaskRunOptions EvalRun::run_options(const EvalModel& model, const EvalFolder& folder) const {
  TaskRunOptions options{
      .tasks = tasks_->options(), .run_program = tasks_->runner(), .samples = folder.path() / kSamplesName, .by = folder.by()};
  const TrainConfig& train = model.config().train;
  // Enough for full passes on every replica, and on a CPU for no more than a few minutes.
  constexpr int64_t kManyTokens = 4096;
  const int64_t pass = train.micro_batch * train.seq_len;
  options.chunk_tokens = pass * (pass > kManyTokens ? 32 : 8) * model.config().parallel.dp;
  if (options.run_program) options.judge_threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return options;
}

bool EvalRun::run_here(EvalModel& model, TextModel& text, EvalFolder& folder, const std::string& warning) {
  const std::vector<const Task*>& tasks = tasks_->all();
  std::vector<EvalShown::Part> parts;
  for (size_t t = 0; t < tasks.size(); ++t)
    parts.push_back({.name = tasks[t]->info().name, .kind = tasks[t]->info().kind, .examples = tasks_->examples(t)});
  EvalShown shown(std::cerr, progress_options(STDERR_FILENO, 0), std::move(parts));
  double begin = now_s();
  const TaskRunHooks hooks{.progress = [&](size_t task, int64_t examples) { shown.show(task, examples); },
                           .finished =
                               [&](const TaskResult& result) {
                                 TaskScores scores = scores_of(result);
                                 if (!warning.empty()) scores.warnings.insert(scores.warnings.begin(), warning);
                                 folder.results().put(std::move(scores));
                                 folder.save();
                                 shown.end_line();
                                 print_err(done_text(result, now_s() - begin));
                                 begin = now_s();
                               },
                           .stop = [&] { return signals_.asked() != 0; }};
  const TaskRunResult result = run_tasks(text, tasks, run_options(model, folder), hooks);
  if (!result.stopped) return false;
  const size_t open = result.tasks.size();
  shown.end_line();
  print_err(fmt::format("{}: {} of {} examples are done and kept\n", tasks[open]->info().name, result.kept, tasks_->examples(open)));
  return true;
}

Evaluated EvalRun::run(const fs::path& checkpoint, const fs::path& out) {
  const bool leads = session_.rank() == 0;
  std::unique_ptr<EvalFolder> folder;
  from_rank_0(session_.world(), [&] {
    folder = std::make_unique<EvalFolder>(out, identity_of(args_, read_index(checkpoint)));
    tasks_->refuse_fewer(folder->results(), out.string());
    return std::string();
  });
  EvalModelOptions options = args_.model;
  options.checkpoint = checkpoint.string(), options.step = {};
  EvalModel model(options, session_, [](const std::string& line) { print_err(line + "\n"); });
  const std::string warning = check_tokenizer(model, !options.tokenizer.empty());
  if (leads && !warning.empty()) print_err("warning: " + warning + "\n");
  const RunTokenizer& tokenizer = model.tokenizer();
  const EncodingRules rules{.bos = args_.bos == "auto" ? tokenizer.adds_bos() : args_.bos == "on",
                            .begin = tokenizer.bos(),
                            .end = tokenizer.eos(),
                            .max_length = model.model().max_length()};
  TextModel text(model.model(), tokenizer.get(), rules, session_.world());
  signals_.tasks_run(true);
  Evaluated evaluated;
  if (!leads) run_tasks(text, {}, {});  // until rank 0, whose work this is, has no more to ask
  const std::string end = from_rank_0(session_.world(), [&] {
    folder->results().model = model_name(model.folder());
    folder->results().header = header_of(model, args_, tasks_->options(), rules);
    const bool stopped = run_here(model, text, *folder, warning);
    folder->save();
    evaluated.results = folder->results();
    return std::string(stopped ? "stopped" : "");
  });
  signals_.tasks_run(false);
  evaluated.stopped = !end.empty();
  return evaluated;
}

std::optional<Results> EvalRun::find_done(const fs::path& checkpoint, const fs::path& out) const {
  std::optional<Results> found;
  try {
    found = EvalFolder::find(out, identity_of(args_, read_index(checkpoint)));
  } catch (const UsageError& e) {  // of one folder: the others are still looked at
    print_err(fmt::format("warning: {}\n", e.what()));
  }
  if (!found) return {};
  tasks_->refuse_fewer(*found, out.string());
  return tasks_->done_in(*found) ? found : std::nullopt;
}

}  // namespace hlat
