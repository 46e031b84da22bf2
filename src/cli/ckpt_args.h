// The `CKPT... [--step N] [--json]` that subcommands of ckpt share.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hlat {

struct CheckpointArgs {
  std::vector<std::string> given;
  std::optional<int64_t> step;
  bool json = false;

  std::vector<std::filesystem::path> find() const;  // the checkpoint that each argument means
};

// Adds them to a command, least to most checkpoints. `args` must live until the command has run.
void add_checkpoint_args(CLI::App& command, CheckpointArgs& args, int least, int most);

// Ends a command's help with an example of its use and the memory it takes.
void show_example_and_memory(CLI::App& command, const std::string& example, const std::string& memory);

}  // namespace hlat
