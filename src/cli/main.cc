// The command line. The only place that catches: bad input ends with 2, what the machine or the run caused with 1,
// a broken contract of our own with 3.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/ranks.h"

#ifndef HLAT_VERSION
#define HLAT_VERSION "unversioned"
#endif

namespace {

using namespace hlat;  // NOLINT(google-build-using-namespace)

// Bad input is the same on every rank of a job: rank 0 tells.
bool speaks() {
  try {
    return this_launch().rank == 0;
  } catch (const std::exception&) {
    return true;
  }
}

void run(int argc, char** argv, CLI::App& app) {
  app.set_version_flag("--version", "hlat " HLAT_VERSION);
  app.require_subcommand(0, 1);
  app.failure_message(CLI::FailureMessage::simple);
  hlat::add_train_command(app);
  hlat::add_plan_command(app);
  hlat::add_bench_command(app);
  hlat::add_config_command(app);
  app.parse(argc, argv);
  if (app.get_subcommands().empty()) fmt::print("{}", app.help());
  // A full disk shows itself only here.
  if (std::fflush(stdout) != 0) hlat::fail("cannot write to standard output");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Pre-trains Llama-family language models.", "hlat");
  try {
    run(argc, argv, app);
    return kOk;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kOk : kUsage;  // --help and --version arrive here too
  } catch (const hlat::UsageError& e) {
    if (speaks())
      fmt::print(stderr, "{}\n", e.what());
    else
      std::this_thread::sleep_for(std::chrono::seconds(2));  // a launcher ends the job with the first rank that leaves
    return kUsage;
  } catch (const hlat::CheckFailed& e) {
    fmt::print(stderr, "hlat: {}\nhlat: this is a bug in hlat\n", e.what());
    return kBug;
  } catch (const std::exception& e) {
    fmt::print(stderr, "hlat: {}\n", e.what());
    return kFailed;
  }
}
