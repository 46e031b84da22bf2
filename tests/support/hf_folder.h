// Hugging Face folders for tests: the committed ones, copies of them that are changed, and their tensors as numbers.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/hf/hf_import.h"
#include "checkpoint/hf/hf_weights.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat::test {

inline const std::vector<std::string>& hf_fixtures() {
  static const std::vector<std::string> names = {"mha", "gqa", "tied"};
  return names;
}
inline std::filesystem::path hf_fixture(const std::string& name) { return source_path("tests/fixtures/hf/") + name; }

inline std::string copy_of_fixture(const TempDir& dir, const std::string& name, const std::string& as = "source") {
  std::filesystem::remove_all(dir.path(as));
  std::filesystem::copy(hf_fixture(name), dir.path(as));
  return dir.path(as);
}

// Changes the JSON of a file with a function.
template <class Change>
void edit_json(const std::string& path, const Change& change) {
  auto json = nlohmann::ordered_json::parse(slurp(path));
  change(json);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << json.dump();
}

struct HfValues {
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<float> values;
  bool operator==(const HfValues&) const = default;
};

inline std::map<std::string, HfValues> tensors_of(const std::filesystem::path& folder) {
  std::map<std::string, HfValues> all;
  const HfWeights weights(folder);
  for (const auto& [name, entry] : weights.tensors()) {
    HfValues v{.dtype = entry.tensor.dtype, .shape = entry.tensor.shape, .values = {}};
    v.values.resize((entry.tensor.end - entry.tensor.begin) / safetensors_item_bytes(v.dtype));
    weights.read(entry, 0, static_cast<int64_t>(v.values.size()), DType::f32, v.values.data());
    all[name] = std::move(v);
  }
  return all;
}

}  // namespace hlat::test
