// hlat ckpt: what is done with checkpoints besides training.
#include "cli/ckpt_commands.h"
#include "cli/commands.h"

namespace hlat {

void add_ckpt_command(CLI::App& app) {
  CLI::App* ckpt = app.add_subcommand("ckpt", "checkpoints: import, export");
  needs_subcommand(*ckpt);
  add_ckpt_import(*ckpt);
  add_ckpt_export(*ckpt);
}

}  // namespace hlat
