// Llama folders in Hugging Face's form whose weights follow from their names (tools/formula_llama.py has the formula and makes the same),
// so that what other programs computed with them can be compared without keeping the weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hlat::test {

// The elements of a matrix, or of the vector of a norm.
std::vector<float> formula_values(const std::string& name, int64_t count, bool matrix);

// Writes model.safetensors, f32, for the model of the config.json that the folder has.
void write_formula_weights(const std::filesystem::path& folder);

}  // namespace hlat::test
