// A config from the text of its file, without the file.
#pragma once

#include <string>
#include <vector>

#include "config/load.h"
#include "support/temp_dir.h"

namespace hlat::test {

inline Config config_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const TempDir dir;
  return load_config(dir.write("c.yaml", yaml), overrides).config;
}

}  // namespace hlat::test
