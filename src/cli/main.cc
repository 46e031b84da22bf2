// The command line. What reaches it as an exception becomes a message and an exit code (exit_code.h). With several ranks ranks.cc says
// first who failed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/signals.h"
#include "base/thread_waiting.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/ranks.h"
#include "cli/version.h"
#include "cli/wrong_word.h"

namespace {

using namespace hlat;  // NOLINT(google-build-using-namespace)

// Ranks other than 0 keep what everybody would print to themselves; only the failure of one rank is told by that rank.
void stay_silent() {
  if (std::freopen("/dev/null", "w", stdout) == nullptr) hlat::fail("cannot open /dev/null");
}

// What a failure that is the same on all ranks comes to on this one. A rank that still runs after the delay is the only one that fails:
// rank 0 would have ended the job.
int usage(bool speaks, const std::string& text) {
  if (!speaks) delay_exit_after_rank_0();
  print_err(fmt::format("{}{}\n", speaks ? "" : "hlat: " + where(this_launch()), text));
  return kUsage;
}

void run(int argc, char** argv, CLI::App& app) {
  app.set_version_flag("--version", fmt::format("hlat {}", version()));
  app.require_subcommand(0, 1);
  app.failure_message(CLI::FailureMessage::simple);
  hlat::add_train_command(app);
  hlat::add_plan_command(app);
  hlat::add_bench_command(app);
  hlat::add_config_command(app);
  hlat::add_data_command(app);
  hlat::add_ckpt_command(app);
  hlat::add_eval_command(app);
  hlat::add_generate_command(app);
  hlat::add_runs_command(app);
  hlat::add_report_command(app);
  hlat::add_launch_command(app);
  hlat::add_agent_command(app);
  hlat::add_check_command(app);
  hlat::add_study_command(app);
  hlat::show_example(app, "hlat train --config configs/nano.yaml train.steps=100\nhlat COMMAND --help explains a command.");
  app.parse(argc, argv);
  if (app.get_subcommands().empty()) print_out(app.help());
  // A full disk shows itself only here.
  print_out("");
}

}  // namespace

int main(int argc, char** argv) {
  bound_spinning(argv);
  std::signal(SIGPIPE, SIG_IGN);  // see cli/print.h
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is then a failed write, with a message
  CLI::App app("Pre-trains Llama-family language models.", "hlat");
  const bool speaks = is_reporting_rank();
  try {
    if (!speaks) stay_silent();
    run(argc, argv, app);
    return kOk;
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();  // of a command that has said all
  } catch (const CLI::ParseError& e) {
    std::ostringstream text;
    if (app.exit(e, std::cout, text) == 0) return kOk;  // --help and --version arrive here too
    std::string line = wrong_word(app, {argv + 1, argv + argc});
    if (line.empty()) line = text.str();
    while (line.ends_with('\n')) line.pop_back();
    return usage(speaks, line);
  } catch (const hlat::UsageError& e) {
    return usage(speaks, e.what());
  } catch (const hlat::Interrupted& e) {
    return exit_code_of(e);  // its command has said so
  } catch (const std::exception& e) {
    print_err(fmt::format("hlat: {}\n{}", e.what(), exit_code_of(e) == kBug ? "hlat: this is a bug in hlat\n" : ""));
    return exit_code_of(e);
  }
}
