// hlat data: what a run would read.
#include "cli/commands.h"

namespace hlat {

void add_data_command(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "look at data and tokenizers");
  data->require_subcommand(1);
  add_data_inspect_command(*data);
  add_data_sample_command(*data);
}

}  // namespace hlat
