#include "cli/wrong_word.h"

#include <fmt/format.h>

#include <cctype>

#include "config/fields.h"
#include "config/foreign.h"
#include "config/nearest.h"

namespace hlat {
namespace {

std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name() : full_name(*command.get_parent()) + " " + command.get_name();
}

std::vector<const CLI::App*> commands_of(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* find_command(const CLI::App& command, const std::string& name) {
  for (const CLI::App* sub : commands_of(command))
    if (sub->get_name() == name) return sub;
  return nullptr;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : commands_of(command))
    if (!sub->get_group().empty()) names.push_back(sub->get_name());  // others are not for people
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string other_than(const std::string& word, const std::vector<std::string>& names) {
  return "; " + alternatives(word, std::vector<std::string_view>(names.begin(), names.end()));
}

std::string unknown_command(const CLI::App& command, const std::string& word) {
  if (word == "help") return fmt::format("{0}: there is no command help; run {0} --help", full_name(command));
  return fmt::format("{}: there is no command {}{}", full_name(command), word, other_than(word, command_names(command)));
}

// Keys are words, not options: what --train.steps=5, --lr 1e-3 or --batch_size 8 should have been. Empty for other words.
std::string key_as_option(const std::string& option) {
  const std::string name = option.substr(option.find_first_not_of('-'));
  Config any;
  for (const Field& f : all_fields(any))
    if (name == f.key() || name == f.leaf) return fmt::format("; keys of the config are given without dashes: {}=VALUE", f.key());
  const std::string ours = foreign_key(name);
  return ours.empty() ? "" : fmt::format("; {}, and keys of the config are given without dashes, as section.key=value", ours);
}

std::string unknown_option(const CLI::App& command, const std::string& option) {
  std::string meant;
  if (const CLI::App* sub = find_command(command, option.substr(option.find_first_not_of('-'))))
    return fmt::format("{}: there is no option {}; the command is {}", full_name(command), option, full_name(*sub));
  if (command.get_option_no_throw("--config") != nullptr) meant = key_as_option(option);
  if (meant.empty()) meant = other_than("--" + option.substr(option.find_first_not_of('-')), option_names(command));
  return fmt::format("{}: there is no option {}{}", full_name(command), option, meant);
}

bool is_option(const std::string& word) {
  const size_t letter = word.find_first_not_of('-');
  return letter != 0 && letter != std::string::npos && std::isdigit(static_cast<unsigned char>(word[letter])) == 0;
}

}  // namespace

std::string wrong_word(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string file;
  bool configured = false;
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (is_option(word)) {
      const size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      const CLI::Option* option = command->get_option_no_throw(name);
      if (option == nullptr) return unknown_option(*command, name);
      if (name == "--config" && configured) return fmt::format("{}: --config is given twice; a run has one file", full_name(*command));
      configured = configured || name == "--config";
      if (equals == std::string::npos && option->get_expected_max() > 0) ++i;  // its value
    } else if (const CLI::App* sub = find_command(*command, word)) {
      command = sub;
    } else if (!commands_of(*command).empty()) {
      return unknown_command(*command, word);
    } else if (word.ends_with(".yaml") || word.ends_with(".yml")) {
      file = word;
    }
  }
  if (file.empty() || configured || command->get_option_no_throw("--config") == nullptr) return {};
  return fmt::format("{0}: the config file is given as an option: {0} --config {1}", full_name(*command), file);
}

}  // namespace hlat
