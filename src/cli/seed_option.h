// Options for seeds of random numbers: whole numbers from 0 on. The library that reads options would make a large number of a negative one.
#pragma once

#include <CLI/CLI.hpp>

namespace hlat {

CLI::Validator seed_number();

}  // namespace hlat
