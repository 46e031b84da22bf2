#include "cli/ckpt_args.h"

#include "checkpoint/find_checkpoint.h"
#include "cli/commands.h"

namespace hlat {

std::vector<std::filesystem::path> CheckpointArgs::find() const {
  std::vector<std::filesystem::path> found;
  for (const std::string& path : given) found.push_back(find_checkpoint(path, step));
  return found;
}

void add_checkpoint_args(CLI::App& command, CheckpointArgs& args, int least, int most) {
  command.add_option("checkpoints", args.given, "a checkpoint (.../step_N), or a run folder: its latest")
      ->required()
      ->expected(least, most)
      ->type_name("CKPT");
  command.add_option("--step", args.step, "this step of a run folder instead of the latest")
      ->check(within(int64_t{0}, int64_t{1} << 56))
      ->type_name("N");
  command.add_flag("--json", args.json, "print one JSON object");
}

void show_example_and_memory(CLI::App& command, const std::string& example, const std::string& memory) {
  show_example(command, example + "\nMemory: " + memory);
}

}  // namespace hlat
