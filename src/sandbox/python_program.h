// How a Python program says that it ran to its end. Status 0 alone does not: sys.exit(0) in an answer would skip the tests behind it.
// A few lines of ours run the program and then, in the first process only, write a mark to a descriptor. The mark is new for each
// run and is handed over with the program, so a program that was not written against these very lines does not know it. One that was
// can look it up in the interpreter they share, as it can replace what its tests compare with: see docs/sandbox.md.
#pragma once

#include <string>
#include <vector>

namespace hlat::sandbox {

std::vector<std::string> python_arguments();  // of python3
std::string new_mark();
std::string marked_program(const std::string& mark, const std::string& program);  // what kProgramDescriptor gives

}  // namespace hlat::sandbox
