// hlat study: runs the grid of a study file, resumes where it was left, and makes a table and curves of what came of it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "base/signals.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/study_process.h"
#include "cli/study_report.h"
#include "config/nearest.h"
#include "config/nearest_file.h"
#include "record/progress.h"
#include "study/result_table.h"
#include "study/runner.h"
#include "study/study_view.h"

namespace hlat {
namespace {

struct StudyArgs {
  std::string file, out;
  std::vector<std::string> set, overrides, only;
  bool list = false, table = false, fresh = false, json = false;
  int64_t at_once = 0;  // 0: as the study says
  double limit_s = 0, stop_s = 0;
};

using StudyJson = nlohmann::ordered_json;

std::string step_of_steps(int64_t step, int64_t steps) { return steps > 0 ? fmt::format("{}/{}", step, steps) : std::to_string(step); }

// The grid, how each run stands, and what it sets.
void list_study(const Study& study, const std::vector<PlannedRun>& runs, bool json) {
  std::vector<std::vector<std::string>> rows = {{"run", "state", "step", "ranks", "sets"}};
  StudyJson list = StudyJson::array();
  for (const PlannedRun& p : runs) {
    const RunStanding found = standing_of(p);
    std::vector<std::string> keys;
    for (const Entry& e : p.run.set) keys.push_back(fmt::format("{}={}", e.key(), e.text));
    std::string state(name_of(found.standing));
    if (!found.changes.empty()) state += ", of another config";
    if (found.standing == Standing::unreadable || found.standing == Standing::taken) state += ": " + found.reason;
    rows.push_back({p.run.name, state, step_of_steps(found.step, p.config.train.steps), std::to_string(p.ranks),
                    fmt::format("{}", fmt::join(keys, " "))});
    list.push_back({{"name", p.run.name},
                    {"row", p.run.row},
                    {"folder", p.config.run.dir},
                    {"state", name_of(found.standing)},
                    {"reason", found.reason},
                    {"step", found.step},
                    {"steps", p.config.train.steps},
                    {"ranks", p.ranks},
                    {"set", keys}});
    StudyJson changes = StudyJson::array();
    for (const KeyChange& c : found.changes) changes.push_back(c.str());
    list.back()["contradicts"] = changes;
  }
  if (json)
    print_out(json_text(StudyJson{{"study", study.name}, {"runs", list}}, 2) + "\n");
  else
    print_out(table_text(rows, "llrrl"));
}

// A table in which no run has a place would take that of the results which the folder has.
void refuse_table_of_none(const StudyResults& whole, const std::string& out) {
  const RunStanding* other = nullptr;
  size_t count = 0;
  bool begun = false;
  for (const RunFigures& run : whole.runs) {
    begun = begun || run.standing.standing != Standing::waiting;
    if (run.standing.standing == Standing::waiting || run.standing.standing == Standing::taken ||
        run.standing.standing == Standing::unreadable)
      continue;
    if (run.standing.changes.empty()) return;
    if (other == nullptr) other = &run.standing;
    ++count;
  }
  if (!begun)
    fail<UsageError>("--table: none of the runs of {} has begun in {}, so nothing was written; --list shows them", whole.study, out);
  if (other != nullptr)
    fail<UsageError>(
        "--table: {} has {}, but with another config than asked for ({}), so nothing was written; give the study and the keys "
        "that {} started with",
        whole.study, count == 1 ? "one run" : fmt::format("{} runs", count), other->changes.front().str(),
        count == 1 ? "it was" : "they were");
}

// The files have all runs; printed are those that were asked for.
void tell_results(const StudyArgs& args, const Study& study, const std::vector<PlannedRun>& all, const std::vector<PlannedRun>& shown) {
  const StudyResults whole = read_results(study, all);
  if (args.table) refuse_table_of_none(whole, args.out);
  const StudyResults results = results_of(study, whole, shown);
  print_out(args.json ? json_text(results_json(results), 2) + "\n" : results_table(results, study.collect));
  for (const RunFigures& run : results.runs) {
    if (run.standing.standing == Standing::unreadable)
      print_err(fmt::format("hlat study: {} is left out: {}\n", run.name, run.standing.reason));
    else if (!run.standing.changes.empty())
      print_err(fmt::format("hlat study: {} is left out: its folder has a run of another config ({})\n", run.name,
                            run.standing.changes.front().str()));
    else if (run.metrics_end_early())
      print_err(fmt::format("hlat study: {} is finished, but its metrics end at step {} of {}, so its final loss is not known\n", run.name,
                            run.standing.step, run.steps));
  }
  write_results(args.out, whole, study.collect);
  const std::string no_report = write_study_report(args.out, all, whole, study.collect);
  print_err(fmt::format("results.json, results.md, loss.svg{} are in {}\n",
                        no_report.empty() ? fmt::format(", grad_norm.svg and {}", kStudyReport) : " and grad_norm.svg", args.out));
  if (!no_report.empty()) print_err(fmt::format("hlat study: {} is left out: {}\n", kStudyReport, no_report));
}

// Of the folder beside a path that the path may have meant.
std::string folder_hint(const std::filesystem::path& given) {
  namespace fs = std::filesystem;
  const fs::path path = given.has_filename() ? given : given.parent_path(), parent = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code failed;
  if (!fs::is_directory(parent, failed)) return file_hint(path.string());  // which folder of the path there is not
  std::vector<std::string> names;
  for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end; entry.increment(failed))
    if (std::error_code gone; entry->is_directory(gone)) names.push_back(entry->path().filename().string());
  const std::string word = path.filename().string();
  const std::string_view near = nearest(word, std::vector<std::string_view>(names.begin(), names.end()));
  return near.empty() ? "" : fmt::format("; did you mean {}?", (parent / near).lexically_normal().string());
}

void check_results_folder(const std::string& out) {
  std::error_code none;
  if (std::filesystem::is_directory(out, none)) return;
  if (std::filesystem::exists(out, none)) fail<UsageError>("--table: {} is a file, not the folder of a study", out);
  fail<UsageError>("--table: there is no folder {}, so no run of this study was started there{}", out, folder_hint(out));
}

StudyEnd run_all(const StudyArgs& args, const Study& study, const std::vector<PlannedRun>& runs) {
  StudyView view(
      std::cerr, [] { return live_columns(STDERR_FILENO); }, now_s);
  std::atomic<int> asked = 0;
  std::atomic<bool> twice = false;
  const EndSignals signals([&](const EndSignals::Signal& s) {
    if (s.first) asked = s.number;
    twice = twice || !s.first;
  });
  StudyWorld world;
  world.start = start_run_process;
  world.now = now_s;
  world.pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
  world.asked = [&] { return asked.load(); };
  world.asked_twice = [&] { return twice.load(); };
  world.say = [&](const std::string& text) { view.say(text); };
  world.show = [&](const std::vector<RunShown>& shown, const std::string& done) { view.show(shown, done); };
  const StudyOptions options{
      .at_once = args.at_once > 0 ? args.at_once : study.at_once, .limit_s = args.limit_s, .stop_s = args.stop_s, .fresh = args.fresh};
  return run_study(runs, options, world);
}

void run_study_command(StudyArgs args) {
  const Study study = read_study(args.file, collectable_columns());
  if (args.out.empty()) args.out = (std::filesystem::path("runs/studies") / study.name).string();
  std::vector<std::string> words = args.set;
  words.insert(words.end(), args.overrides.begin(), args.overrides.end());
  const std::vector<PlannedRun> all = plan_runs(study, words, args.out);
  const std::vector<PlannedRun> runs = chosen_runs(study, all, args.only);
  if (args.list) return list_study(study, runs, args.json);
  if (args.table) {
    check_results_folder(args.out);
    return tell_results(args, study, all, runs);
  }
  const StudyEnd end = run_all(args, study, runs);
  tell_results(args, study, all, all);
  print_err(fmt::format("hlat study: {}\n", end.words()));
  if (end.failed > 0) throw CLI::RuntimeError(end.refused == end.failed ? kUsage : kFault);  // more than that it was asked to end
  if (end.signal != 0) throw CLI::RuntimeError(exit_code_of_signal(end.signal, true));
}

}  // namespace

void add_study_command(CLI::App& app) {
  const auto args = std::make_shared<StudyArgs>();
  CLI::App* command = app.add_subcommand("study", "train a grid of configs and compare them: a table with spreads over seeds, and curves");
  command->add_option("file", args->file, "a study: its base config, axes and what to collect (docs/studies.md)")
      ->required()
      ->type_name("FILE");
  command->add_option("overrides", args->overrides, "keys for all runs, such as data.tokenizer=FILE; they win over the study")
      ->type_name("SECTION.KEY=VALUE");
  command->add_option("--out", args->out, "folder of the runs and results; default: runs/studies/NAME")->type_name("FOLDER");
  command->add_option("--set", args->set, "a key for all runs; the same as SECTION.KEY=VALUE without --set")
      ->type_name("SECTION.KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--only", args->only, "runs, rows or points by name, separated by commas")
      ->delimiter(',')
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--at-once", args->at_once, "runs at one time; default: as the study says")
      ->check(within<int64_t>(1, 4096))
      ->type_name("N");
  command->add_option("--limit", args->limit_s, "seconds after which no further run is started")
      ->check(within(0.0, 1e9))
      ->type_name("SECONDS");
  command->add_option("--stop", args->stop_s, "seconds after which runs save and end; the same command resumes them")
      ->check(within(0.0, 1e9))
      ->type_name("SECONDS");
  command->add_flag("--list", args->list, "show the runs and their state; start nothing");
  command->add_flag("--table", args->table, "only write the table and curves of the steps recorded so far; start nothing");
  command->add_flag("--fresh", args->fresh, "set runs whose folder has another config aside, and start them again");
  command->add_flag("--json", args->json, "print the results, or the list, as one JSON object");
  show_example(*command, "hlat study studies/nano.yaml");
  command->callback([args] { run_study_command(*args); });
}

}  // namespace hlat
