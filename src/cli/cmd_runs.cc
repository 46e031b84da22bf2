// hlat runs: run folders, how their runs stand, and what became of their time.
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/goodput_shown.h"
#include "cli/print.h"
#include "cli/train_summary.h"
#include "record/run_overview.h"

namespace hlat {
namespace {

using RunsJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct RunsArgs {
  std::vector<std::string> folders;
  bool json = false;
};

constexpr size_t kEventWidth = 60;

std::string shortened(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  if (line.size() > kEventWidth) line = line.substr(0, kEventWidth - 3) + "...";
  return line;
}

void check_folder(const fs::path& path) {
  std::error_code none;
  if (!fs::exists(path, none)) fail<UsageError>("there is no folder {}", path.string());
  if (!fs::is_directory(path, none)) fail<UsageError>("{} is a file, not a folder", path.string());
}

// After all that could be read was shown.
void refuse_damage(const std::vector<RunOverview>& runs) {
  std::string text;
  for (const RunOverview& run : runs) {
    if (run.problems.empty()) continue;
    const size_t more = run.problems.size() - 1;
    text += fmt::format("{}{} is damaged: {}{}; the rest was used", text.empty() ? "" : "\n", (run.folder / "events.jsonl").string(),
                        run.problems.front(), more > 0 ? fmt::format(" (and {} more)", more) : "");
  }
  if (!text.empty()) throw UsageError(text);
}

std::string step_text(const RunOverview& run) {
  return run.total > 0 ? fmt::format("{}/{}", run.step, run.total) : std::to_string(run.step);
}

std::string percent(const Goodput& g) { return g.wall_s > 0 ? fmt::format("{:.1f}%", 100 * g.ratio()) : ""; }

RunsJson overview_json(const RunOverview& run) {
  RunsJson j{{"folder", run.folder.string()}, {"state", name_of(run.state)}, {"step", run.step}};
  j["steps"] = run.total > 0 ? RunsJson(run.total) : RunsJson();
  j["loss"] = run.loss ? RunsJson(*run.loss) : RunsJson();
  j["time"] = goodput_json(run.run.goodput);
  j["alarms"] = run.alarms();
  j["last_event"] = run.last_event();
  j["changed_at"] = utc_text(run.changed_at());
  if (!run.problems.empty()) j["problems"] = run.problems;
  return j;
}

void list_runs(const RunsArgs& args) {
  std::vector<RunOverview> runs;
  for (const std::string& folder : args.folders.empty() ? std::vector<std::string>{"runs"} : args.folders) {
    check_folder(folder);
    for (const fs::path& path : run_folders(folder)) runs.push_back(read_run(path));
  }
  if (args.json) {
    RunsJson list = RunsJson::array();
    for (const RunOverview& run : runs) list.push_back(overview_json(run));
    print_out(json_text(RunsJson{{"runs", std::move(list)}}, 2) + "\n");
  } else {
    std::vector<std::vector<std::string>> rows = {{"run", "state", "step", "loss", "goodput", "restarts", "age", "last event"}};
    for (const RunOverview& run : runs)
      rows.push_back({run.folder.string(), std::string(name_of(run.state)), step_text(run),
                      run.loss ? fmt::format("{:.4f}", *run.loss) : "", percent(run.run.goodput), std::to_string(run.run.goodput.restarts),
                      format_duration(std::max(0.0, wall_time() - run.changed_at())), shortened(run.last_event())});
    print_out(runs.empty() ? "no run folders\n" : table_text(rows, "llrrrrrl"));
  }
  refuse_damage(runs);
}

std::string when(double time) { return time > 0 ? utc_text(time).substr(0, 19) + "Z" : ""; }

std::string attempts_table(const RunAccount& run) {
  std::vector<std::vector<std::string>> rows = {{"attempt", "began", "ready in", "lasted", "ranks", "steps", "kept", "ended by"}};
  for (const RunAttempt& a : run.attempts) {
    const double end = a.end > 0 ? a.end : run.until;
    std::string by = a.cause.empty() ? a.reason : a.cause + (a.reason.empty() ? "" : ": " + a.reason);
    if (a.end > 0 && by.empty()) by = "no word";
    rows.push_back({std::to_string(a.number), when(a.begin), a.ready > 0 ? format_duration(a.ready - a.begin) : "never",
                    format_duration(std::max(0.0, end - a.begin)),
                    a.mesh.empty() ? std::to_string(a.ranks) : fmt::format("{} ({})", a.ranks, a.mesh),
                    a.reached > a.from ? fmt::format("{} to {}", a.from + 1, a.reached) : "none", std::to_string(a.kept),
                    a.end > 0 ? shortened(by) : "it runs"});
  }
  return table_text(rows, "rlrrlrrl");
}

// All events of the run but saves that went well; the first column is the time since the run began.
std::string timeline(const RunOverview& run) {
  std::vector<std::vector<std::string>> rows = {{"time", "after", "event"}};
  for (const RunEvent& e : run.events) {
    if (e.kind == "save" || e.time < run.run.begin) continue;
    rows.push_back({when(e.time), format_duration(e.time - run.run.begin), words_of(e).substr(0, words_of(e).find('\n'))});
  }
  return table_text(rows, "lrl");
}

RunsJson attempts_json(const RunAccount& run) {
  RunsJson list = RunsJson::array();
  const auto time = [](double t) { return t > 0 ? RunsJson(utc_text(t)) : RunsJson(); };
  for (const RunAttempt& a : run.attempts)
    list.push_back({{"attempt", a.number},
                    {"begin", time(a.begin)},
                    {"ready", time(a.ready)},
                    {"end", time(a.end)},
                    {"ranks", a.ranks},
                    {"mesh", a.mesh},
                    {"hosts", a.hosts},
                    {"from", a.from},
                    {"reached", a.reached},
                    {"kept", a.kept},
                    {"cause", a.cause},
                    {"reason", a.reason},
                    {"rank", a.rank},
                    {"host", a.host},
                    {"exit_code", a.exit_code ? RunsJson(*a.exit_code) : RunsJson()}});
  return list;
}

void show_run(const RunsArgs& args) {
  const fs::path folder = args.folders.front();
  check_folder(folder);
  if (!is_run_folder(folder))
    fail<UsageError>("{} is no run folder: it has no events.jsonl; hlat runs ls finds run folders", folder.string());
  const RunOverview run = read_run(folder);
  if (args.json) {
    RunsJson j = overview_json(run);
    j["attempts"] = attempts_json(run.run);
    j["events"] = RunsJson::array();
    for (const RunEvent& e : run.events)
      if (e.time >= run.run.begin)
        j["events"].push_back({{"time", utc_text(e.time)}, {"kind", e.kind}, {"by", e.by}, {"step", e.step}, {"words", words_of(e)}});
    print_out(json_text(j, 2) + "\n");
  } else {
    const Goodput& g = run.run.goodput;
    const auto alarms = run.alarms();
    print_out(fmt::format("{}\n{}, step {}{}\n{}{}{}\n\n{}\n{}\n{}", folder.string(), name_of(run.state), step_text(run),
                          run.loss ? fmt::format(", loss {:.4f}", *run.loss) : "", goodput_words(g),
                          g.step_s > 0 ? fmt::format(", {} a step", format_duration(g.step_s)) : "",
                          alarms.empty() ? "" : "\nalarms: " + alarms_text(alarms), timeline(run), attempts_table(run.run),
                          goodput_table(g)));
  }
  refuse_damage({run});
}

}  // namespace

void add_runs_command(CLI::App& app) {
  CLI::App* runs = app.add_subcommand("runs", "run folders: ls, show");
  needs_subcommand(*runs);
  const auto listed = std::make_shared<RunsArgs>();
  CLI::App* ls = runs->add_subcommand("ls", "list runs: state, step, loss, goodput, restarts, last event");
  ls->add_option("folders", listed->folders, "folders to look for run folders in; default: runs")->type_name("FOLDER");
  ls->add_flag("--json", listed->json, "print one JSON object");
  show_example(*ls, "hlat runs ls runs");
  ls->callback([listed] { list_runs(*listed); });
  const auto shown = std::make_shared<RunsArgs>();
  CLI::App* show = runs->add_subcommand("show", "what happened in a run, its attempts, and what its time went to");
  show->add_option("run", shown->folders, "a run folder")->required()->expected(1)->type_name("RUN");
  show->add_flag("--json", shown->json, "print one JSON object");
  show_example(*show, "hlat runs show runs/default");
  show->callback([shown] { show_run(*shown); });
}

}  // namespace hlat
