// hlat data: what is done with training data besides training.
#include "cli/commands.h"

namespace hlat {

void add_data_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("data", "training data: tokenize");
  command->require_subcommand(1);
  add_data_tokenize_command(*command);
}

}  // namespace hlat
