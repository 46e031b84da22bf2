// A command line that could not be read: which word is wrong, and the nearest command or option.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hlat {

// Walks the words as the commands of `app` take them. Returns one line about the first that is neither a command nor an option of its
// command, or about a config file that is given without --config or twice; nothing when all words are known.
std::string wrong_word(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace hlat
