#include "support/formula_llama.h"

#include <fstream>

#include "base/rng.h"
#include "checkpoint/hf/hf_config.h"
#include "checkpoint/hf/hf_tensors.h"
#include "checkpoint/safetensors.h"
#include "support/temp_dir.h"

namespace hlat::test {

namespace {

uint64_t splitmix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace

std::vector<float> formula_values(const std::string& name, int64_t count, bool matrix) {
  const uint64_t start = hash_name(name);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = splitmix64(start + (i + 1) * 0x9e3779b97f4a7c15ull);
    int64_t sum = -131070;
    for (const int shift : {0, 16, 32, 48}) sum += static_cast<int64_t>((bits >> shift) & 0xffff);
    values[i] = static_cast<float>(matrix ? static_cast<double>(sum) * 0x1p-17 : 1 + static_cast<double>(sum) * 0x1p-19);
  }
  return values;
}

void write_formula_weights(const std::filesystem::path& folder) {
  const HfConfig config = parse_hf_config(slurp((folder / "config.json").string()));
  SafetensorsHeader header;
  std::string bytes;
  for (const HfTensor& tensor : hf_tensors(config.model))
    for (const HfPart& part : tensor.parts) {
      const std::vector<float> values = formula_values(part.name, part.count(), part.shape.size() == 2);
      SafeTensor entry{.name = part.name, .dtype = "F32", .shape = part.shape, .begin = bytes.size()};
      bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
      entry.end = bytes.size();
      header.tensors.push_back(std::move(entry));
    }
  std::ofstream(folder / "model.safetensors", std::ios::binary) << header.save() << bytes;
}

}  // namespace hlat::test
