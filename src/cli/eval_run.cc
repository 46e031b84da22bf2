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
#include "cli/eval_shown.h"
#include "cli/eval_table.h"
#include "cli/print.h"
#include "cli/version.h"
#include "comm/host_exchange.h"
#include "config/load.h"
#include "config/policy.h"
#include "config/saved.h"
#include "runtime/from_rank_0.h"
#include "train/state_records.h"

namespace hlat {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<std::string> split_names(const std::string& names) {
  std::vector<std::string> all;
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find(',', at), names.size());
    if (end > at) all.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

// A run's checkpoint knows which tokenizer its data was made with. One that a user names may be another file of the same.
void check_tokenizer(const EvalModel& model, bool given, bool leads) {
  if (model.index().find_record("data") == nullptr) return;
  const uint64_t saved = saved_position(model.index()).identity.tokenizer;
  if (saved == model.tokenizer().get().fingerprint()) return;
  const std::string words = fmt::format("the tokenizer {} is not the one that {} was trained with: its content differs",
                                        model.tokenizer().name(), model.folder().string());
  if (!given) throw UsageError(words + "; --tokenizer names another file");
  if (leads) print_err("warning: " + words + "\n");
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
            {"precision", name_of(config.train.precision)},
            {"mesh", {{"dp", p.dp}, {"tp", p.tp}, {"pp", p.pp}}},
            {"limit", options.limit > 0 ? Json(options.limit) : Json()},
            {"num_fewshot", args.shots ? Json(*args.shots) : Json()},
            {"fewshot_seed", args.fewshot_seed},
            {"seed", args.seed},
            {"data", fs::absolute(options.data).string()}}},
          {"date", std::time(nullptr)},
          {"hlat_version", version()}};
}

std::string done_text(const TaskResult& result, double seconds) {
  if (!result.error.empty()) return fmt::format("{}: failed: {}\n", result.info.name, result.error);
  const TaskScores scores = scores_of(result);
  const MetricResult& m = scores.metrics[scores.headline];
  int64_t reused = 0;
  for (const SubtaskResult& s : result.subtasks) reused += s.reused;
  const std::string error = error_text(m);
  return fmt::format("{}: {} {}{}, {} example{}{} in {}\n", result.info.name, m.label(), value_text(m), error.empty() ? "" : " +- " + error,
                     result.examples(), result.examples() == 1 ? "" : "s", reused > 0 ? fmt::format(" ({} of an earlier run)", reused) : "",
                     format_duration(seconds));
}

}  // namespace

EvalRun::EvalRun(const EvalArgs& args, const fs::path& checkpoint, Session& session, EvalSignals& signals)
    : args_(args), session_(session), signals_(signals) {
  from_rank_0(session.world(), [&] {
    find_tasks(checkpoint);
    check_tasks();
    return std::string();
  });
}

void EvalRun::find_tasks(const fs::path& checkpoint) {
  const Json saved = Json::parse(read_index(checkpoint).config);
  const EvalConfig config = override_config(config_from_json(saved).config, args_.model.overrides).config.eval;
  options_ = {.data = args_.data.empty() ? config.data : args_.data,
              .limit = args_.limit.value_or(config.limit),
              .shots = args_.shots,
              .fewshot_seed = args_.fewshot_seed,
              .sampling_seed = args_.seed};
  const std::vector<std::string> names = args_.tasks.empty() ? split_names(config.tasks) : args_.tasks;
  if (names.empty()) throw UsageError("no tasks are given: --tasks names them, and hlat eval --list shows which there are");
  if (options_.data.empty()) throw UsageError("--data is not given: the folder with the files of evaluation data");
  library_.emplace(args_.task_dir.empty() ? config.task_dir : args_.task_dir);
  tasks_ = library_->find(names);
}

// Before anything is computed: what a user has to change.
void EvalRun::check_tasks() {
  std::string missing;
  for (const Task* task : tasks_)
    for (const std::string& file : task->missing(options_)) missing += fmt::format("\n  {}: {}", task->info().name, file);
  if (!missing.empty()) fail<UsageError>("data of these tasks is not in {}:{}", options_.data.string(), missing);
  for (const Task* task : tasks_) {
    if (task->info().kind != TaskKind::code) continue;
    if (!args_.allow_code)
      fail<UsageError>("{} runs programs that the model wrote; --allow-code-execution allows that, in a sandbox", task->info().name);
    if (sandbox_ == nullptr) sandbox_ = std::make_unique<sandbox::Sandbox>();
  }
}

TaskRunOptions EvalRun::run_options(const EvalModel& model, const EvalFolder& folder) const {
  TaskRunOptions options{.tasks = options_, .samples = folder.path() / kSamplesName, .by = folder.by()};
  const TrainConfig& train = model.config().train;
  // Enough for full passes on every replica, and on a CPU for no more than a few minutes.
  constexpr int64_t kManyTokens = 4096;
  const int64_t pass = train.micro_batch * train.seq_len;
  options.chunk_tokens = pass * (pass > kManyTokens ? 32 : 8) * model.config().parallel.dp;
  if (sandbox_ != nullptr) {
    options.run_program = [this](const std::string& program) { return sandbox_->run(program).outcome == sandbox::Outcome::passed; };
    options.judge_threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  return options;
}

bool EvalRun::run_here(EvalModel& model, TextModel& text, EvalFolder& folder) {
  std::vector<EvalShown::Part> parts;
  for (const Task* task : tasks_)
    parts.push_back({.name = task->info().name, .kind = task->info().kind, .examples = count_examples(*task, options_)});
  EvalShown shown(std::cerr, progress_options(STDERR_FILENO, 0), std::move(parts));
  double begin = now_s();
  const TaskRunHooks hooks{.progress = [&](size_t task, int64_t examples) { shown.show(task, examples); },
                           .finished =
                               [&](const TaskResult& result) {
                                 folder.results().put(scores_of(result));
                                 folder.save();
                                 shown.end_line();
                                 print_err(done_text(result, now_s() - begin));
                                 begin = now_s();
                               },
                           .stop = [&] { return signals_.asked() != 0; }};
  return run_tasks(text, tasks_, run_options(model, folder), hooks).stopped;
}

Evaluated EvalRun::run(const fs::path& checkpoint, const fs::path& out) {
  const bool leads = session_.rank() == 0;
  std::unique_ptr<EvalFolder> folder;
  from_rank_0(session_.world(), [&] {
    folder = std::make_unique<EvalFolder>(out, identity_of(args_, read_index(checkpoint)));
    return std::string();
  });
  EvalModelOptions options = args_.model;
  options.checkpoint = checkpoint.string(), options.step = {};
  EvalModel model(options, session_, [](const std::string& line) { print_err(line + "\n"); });
  check_tokenizer(model, !options.tokenizer.empty(), leads);
  const RunTokenizer& tokenizer = model.tokenizer();
  const EncodingRules rules{.bos = args_.bos == "auto" ? tokenizer.adds_bos() : args_.bos == "on",
                            .begin = tokenizer.bos(),
                            .end = tokenizer.eos(),
                            .max_length = model.model().max_length()};
  TextModel text(model.model(), tokenizer.get(), rules, session_.world());
  signals_.tasks_run(true);
  Evaluated evaluated;
  if (leads) {
    folder->results().model = model_name(model.folder());
    folder->results().header = header_of(model, args_, options_, rules);
    evaluated.stopped = run_here(model, text, *folder);
    folder->save();
    evaluated.results = folder->results();
  } else {
    run_tasks(text, {}, {});
  }
  signals_.tasks_run(false);
  evaluated.stopped = broadcast_value(session_.world(), evaluated.stopped, 0);
  return evaluated;
}

std::optional<Results> EvalRun::find_done(const fs::path& checkpoint, const fs::path& out) const {
  std::optional<Results> found = EvalFolder::find(out, identity_of(args_, read_index(checkpoint)));
  const auto done = [&](const Task* task) {
    const TaskScores* scores = found->find(task->info().name);
    const int64_t wanted = count_examples(*task, options_);
    return scores != nullptr && scores->error.empty() && scores->version == task->info().version && scores->examples == wanted;
  };
  return found && std::all_of(tasks_.begin(), tasks_.end(), done) ? found : std::nullopt;
}

}  // namespace hlat
