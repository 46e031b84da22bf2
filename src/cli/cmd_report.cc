// hlat report: curves, events and a table of runs, as one HTML file, as a page on localhost, in the terminal, or as JSON.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "base/json_text.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/version.h"
#include "record/progress.h"
#include "report/live_report.h"
#include "report/page.h"
#include "report/report_data.h"
#include "report/runs_table.h"
#include "report/serve.h"
#include "report/settings.h"
#include "report/text_plot.h"

namespace hlat {
namespace {

using ReportJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kServePort = 8642;
constexpr double kRefresh = 5;  // seconds

struct ReportArgs {
  std::vector<std::string> runs, serve;
  std::string out;
  bool text = false, json = false;
  const CLI::Option* serve_option = nullptr;
};

// --serve takes a port if one follows; a word that is none is a run folder.
int serve_port(ReportArgs& args) {
  if (args.serve.empty() || args.serve.front().empty()) return kServePort;
  const std::string word = args.serve.front();
  if (word.find_first_not_of("0123456789") != std::string::npos || fs::is_directory(word)) {
    args.runs.push_back(word);
    return kServePort;
  }
  if (word.size() > 5 || std::stoi(word) > 65535) fail<UsageError>("--serve {}: a port is a number from 0, any free one, to 65535", word);
  return std::stoi(word);
}

void serve_report(const std::vector<std::string>& runs, int port) {
  LiveReport live(runs, version(), kRefresh);
  static_cast<void>(live.answer("/"));  // what cannot be shown is told before anybody asks
  LocalServer server(port);
  const EndSignals signals([](const EndSignals::Signal& signal) {
    if (!signal.first) std::_Exit(128 + signal.number);
  });
  print_out(fmt::format("http://127.0.0.1:{}/ shows the report until Ctrl-C\n", server.port()));
  while (signals.asked() == 0) server.serve_one([&](const std::string& path) { return live.answer(path); }, 200);
}

void tell_left_out(const std::vector<fs::path>& folders, const std::vector<ReportRun>& runs) {
  for (const fs::path& folder : folders)
    if (std::none_of(runs.begin(), runs.end(), [&](const ReportRun& run) { return run.overview.folder == folder; }))
      print_err(fmt::format("hlat report: {}; it is left out\n", why_empty(folder, read_curves(folder / "metrics.jsonl"))));
  for (const ReportRun& run : runs)
    if (run.steps.damaged > 0)
      print_err(fmt::format("hlat report: {} damaged line{} left out of {}\n", run.steps.damaged, run.steps.damaged == 1 ? " is" : "s are",
                            (run.overview.folder / "metrics.jsonl").string()));
}

TextStyle terminal_style() {
  const int columns = live_columns(STDOUT_FILENO);
  return {.width = columns > 0 ? columns : 100,
          .braille = is_utf8_locale(std::getenv("LC_ALL"), std::getenv("LC_CTYPE"), std::getenv("LANG")),
          .color = columns > 0 && std::getenv("NO_COLOR") == nullptr};
}

void run_report(ReportArgs args) {
  const bool serves = args.serve_option->count() > 0;
  const int port = serves ? serve_port(args) : 0;
  if (args.runs.empty()) throw UsageError("hlat report needs a run folder: hlat report runs/default --out report.html");
  if (args.out.empty() && !serves && !args.json) args.text = true;
  if (serves && (!args.out.empty() || args.text || args.json))
    throw UsageError("--serve goes alone: it has no use for --out, --text and --json");
  if (args.text && args.json) throw UsageError("--text and --json: one of them");
  if (serves) return serve_report(args.runs, port);
  const std::vector<fs::path> folders = report_folders(args.runs);
  if (!args.out.empty()) check_page_path(args.out);
  const std::vector<ReportRun> runs = read_report_runs(folders);
  tell_left_out(folders, runs);
  if (!args.out.empty()) write_page(args.out, page_html(report_data(runs, {.version = version(), .made_at = wall_time()})));
  if (args.text) print_out(text_report(runs, terminal_style()));
  if (args.json) {
    ReportJson rows = ReportJson::array();
    for (const ReportRun& run : runs) rows.push_back(row_json(row_of(run)));
    print_out(json_text(ReportJson{{"runs", std::move(rows)}, {"settings", settings_json(runs)}}, 2) + "\n");
  }
  if (!args.text && !args.json) print_out(fmt::format("{} shows {} run{}\n", args.out, runs.size(), runs.size() == 1 ? "" : "s"));
}

}  // namespace

void add_report_command(CLI::App& app) {
  const auto args = std::make_shared<ReportArgs>();
  CLI::App* command = app.add_subcommand("report", "curves, events and a table of runs, as one HTML file or in the terminal");
  command->add_option("runs", args->runs, "run folders, or folders that hold some")->type_name("RUN");
  command->add_option("--out", args->out, "write one HTML file that needs no network")->type_name("FILE");
  args->serve_option = command
                           ->add_option("--serve", args->serve,
                                        fmt::format("show it on http://127.0.0.1:PORT ({}), renewed while a run continues", kServePort))
                           ->expected(0, 1)
                           ->allow_extra_args(false)
                           ->type_name("[PORT]");
  command->add_flag("--text", args->text, "draw the curves in the terminal, as without any of these options");
  command->add_flag("--json", args->json, "print the table as one JSON object");
  show_example(*command, "hlat report runs/a runs/b --out report.html");
  command->callback([args] { run_report(*args); });
}

}  // namespace hlat
