// What a command prints. A reader that has left (`| head -1`) ends the printing, not the command: main ignores SIGPIPE.
#pragma once

#include <string_view>

namespace hlat {

void print_out(std::string_view text);  // to standard output; FaultError when it cannot be stored
void print_err(std::string_view text);  // to standard error; when that fails nobody is left to tell

}  // namespace hlat
