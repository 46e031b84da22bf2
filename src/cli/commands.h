// One function per subcommand: it adds itself to the app, with its options and a callback that does the work.
// A callback throws Error or UsageError; main.cc turns those into messages and exit codes. A result that is told by the exit code alone is
// a CLI::RuntimeError with it.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace hlat {

void add_train_command(CLI::App& app);
void add_plan_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_config_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_ckpt_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_runs_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_launch_command(CLI::App& app);
void add_agent_command(CLI::App& app);
void add_check_command(CLI::App& app);
void add_study_command(CLI::App& app);

// Makes a command that only has subcommands ask for one; a word that is none of them is named.
void needs_subcommand(CLI::App& command);

// Ends a command's help with an example of its use.
void show_example(CLI::App& command, const std::string& example);

// A range that an option's value must lie in. CLI11's own would print it in the help, where it says less than it hides, and has six digits
// behind the point in its message.
template <class Number>
CLI::Validator within(Number lowest, Number highest) {
  const auto check = [=](const std::string& given) {
    Number value = 0;
    const bool right = CLI::detail::lexical_cast(given, value) && value >= lowest && value <= highest;
    return right ? std::string() : fmt::format("{}: must be a number from {} to {}", given, lowest, highest);
  };
  return CLI::Validator(check, "");
}

// Subcommands of bench.
void add_bench_machine_command(CLI::App& bench);

// Subcommands of data.
void add_data_inspect_command(CLI::App& data);
void add_data_sample_command(CLI::App& data);
void add_data_tokenize_command(CLI::App& data);

}  // namespace hlat
