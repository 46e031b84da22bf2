// The list of keys for people: the reference page, and the keys of one section on a terminal.
#pragma once

#include <string>

namespace hlat {

std::string config_reference();  // Markdown: every key with default, values and meaning; docs/config.md is this text

// Keys with their defaults and meaning: all ("" is given), those of a section, or one key with all that is known about it. UsageError with
// the nearest name when there is no such section or key.
std::string config_keys(const std::string& section_or_key);

}  // namespace hlat
