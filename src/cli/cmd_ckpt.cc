// hlat ckpt: what is done with checkpoints besides training.
#include "cli/ckpt_commands.h"
#include "cli/commands.h"

namespace hlat {

void add_ckpt_command(CLI::App& app) {
  CLI::App* ckpt = app.add_subcommand("ckpt", "checkpoints: ls, inspect, verify, diff, average, prune, import, export");
  needs_subcommand(*ckpt);
  add_ckpt_ls(*ckpt);
  add_ckpt_inspect(*ckpt);
  add_ckpt_verify(*ckpt);
  add_ckpt_diff(*ckpt);
  add_ckpt_average(*ckpt);
  add_ckpt_prune(*ckpt);
  add_ckpt_import(*ckpt);
  add_ckpt_export(*ckpt);
}

}  // namespace hlat
