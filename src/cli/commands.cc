#include "cli/commands.h"

#include "base/error.h"

namespace hlat {

void needs_subcommand(CLI::App& command) {
  command.require_subcommand(0, 1);  // 1 would be asked for before a wrong word is looked at
  command.callback([&command] {
    if (!command.get_subcommands().empty()) return;
    std::string names;
    for (const CLI::App* sub : command.get_subcommands({})) names += (names.empty() ? "" : ", ") + sub->get_name();
    throw UsageError(fmt::format("hlat {} needs one of: {}\nRun with --help for more information.", command.get_name(), names));
  });
}

void show_example(CLI::App& command, const std::string& example) { command.footer("Example: " + example); }

}  // namespace hlat
