#include "parallel/partition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "base/error.h"

namespace hlat {

namespace {

// What is wrong with the cuts, or nothing.
std::string cuts_problem(int64_t layers, int64_t parts, const std::vector<int64_t>& cuts) {
  if (static_cast<int64_t>(cuts.size()) != parts - 1) {
    return fmt::format("has {} values, but parallel.pp * parallel.chunks - 1 = {} are needed: the first layer of each piece but the first",
                       cuts.size(), parts - 1);
  }
  int64_t last = 0;
  for (const int64_t cut : cuts) {
    if (cut <= 0 || cut >= layers) return fmt::format("{} is not between 0 and model.layers = {}, both left out", cut, layers);
    if (cut <= last) return fmt::format("{} follows {}, but the values must increase: every piece has at least one layer", cut, last);
    last = cut;
  }
  return {};
}

}  // namespace

std::vector<Part> partition_layers(int64_t layers, int pp, int chunks, const std::vector<int64_t>& cuts) {
  HLAT_CHECK(layers > 0 && pp > 0 && chunks > 0, "layers = {}, pp = {}, chunks = {}", layers, pp, chunks);
  const int64_t parts = int64_t{pp} * chunks;
  if (parts > layers) {
    throw UsageError(
        fmt::format("parallel.pp = {}, parallel.chunks = {}: {} pieces of the model, but only model.layers = {}; each needs one", pp,
                    chunks, parts, layers));
  }
  std::vector<Part> result;
  if (cuts.empty()) {
    for (int64_t v = 0; v < parts; ++v) result.push_back(part_of(layers, v, parts));
    return result;
  }
  const std::string problem = cuts_problem(layers, parts, cuts);
  if (!problem.empty()) throw UsageError(fmt::format("parallel.cuts = [{}]: {}", fmt::join(cuts, ", "), problem));
  int64_t begin = 0;
  for (const int64_t cut : cuts) {
    result.push_back({.begin = begin, .count = cut - begin});
    begin = cut;
  }
  result.push_back({.begin = begin, .count = layers - begin});
  return result;
}

}  // namespace hlat
