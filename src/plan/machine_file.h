// Machine files: YAML, one map of the keys in machine.h. A figure is {value, source, date}; a value needs a source, an empty one does not.
#pragma once

#include <string>

#include "plan/machine.h"

namespace hlat {

// UsageError with all that is wrong, each with the line, the key, the value and what would be right. `file` names the text in messages.
Machine parse_machine(const std::string& text, const std::string& file);
Machine read_machine(const std::string& path);

// The file's text: complete, with empty figures and what they mean.
std::string machine_text(const Machine& m);

}  // namespace hlat
