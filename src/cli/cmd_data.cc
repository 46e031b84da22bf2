// hlat data: what is done with training data besides training.
#include "cli/commands.h"

namespace hlat {

void add_data_command(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "training data: inspect, sample, tokenize");
  needs_subcommand(*data);
  add_data_inspect_command(*data);
  add_data_sample_command(*data);
  add_data_tokenize_command(*data);
}

}  // namespace hlat
