#include "health/light_check.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/machine.h"
#include "comm/host_exchange.h"

namespace hlat {

namespace {

constexpr std::array<Axis, 3> kGrid = {Axis::tp, Axis::dp, Axis::pp};

// What a rank with a wrong answer tells the others.
struct LightVerdict {
  int rank = -1;  // of the mesh; -1: all was right
  std::array<char, 508> words{};
};

// The lowest rank with something to tell, of all ranks of the mesh.
LightVerdict lowest_over(const Mesh& mesh, LightVerdict own) {
  for (const Axis axis : kGrid)
    for (const LightVerdict& v : all_gather_values(mesh.along(axis), own))
      if (v.rank >= 0 && (own.rank < 0 || v.rank < own.rank)) own = v;
  return own;
}

}  // namespace

LightCheck::LightCheck(const Mesh& mesh, DType dtype, int64_t every, Ops& ops, Device& device, Memory& memory)
    : mesh_(mesh), ops_(ops), device_(device), every_(dtype == DType::f32 || dtype == DType::bf16 ? every : 0), known_(kSize, 17) {
  if (every_ == 0) return;
  host_a_ = known_.a(dtype);
  host_b_ = known_.b(dtype);
  host_c_.resize(static_cast<size_t>(kSize * kSize));
  Region& io = memory[Purpose::io];
  a_ = io.alloc(dtype, {kSize, kSize}, "known product");
  b_ = io.alloc(dtype, {kSize, kSize}, "known product");
  c_ = io.alloc(DType::f32, {kSize, kSize}, "known product");
  sum_ = io.alloc(DType::f32, {kSum}, "known sum");
  const MatmulShape shape{.m = kSize, .n = kSize, .k = kSize, .trans_b = true, .a = dtype, .b = dtype, .c = DType::f32};
  if (const size_t bytes = ops.matmul_scratch(shape); bytes > 0) {
    Region& temp = memory[Purpose::temp];
    const Scope scope(temp);
    temp.alloc(DType::f32, {static_cast<int64_t>((bytes + 3) / 4)}, "scratch of the known product");
  }
}

std::string LightCheck::product() {
  device_.upload(a_, host_a_.data());
  device_.upload(b_, host_b_.data());
  ops_.matmul(c_, a_, b_, {.trans_b = true});
  device_.download(host_c_.data(), c_);
  const auto wrong = known_.wrong(host_c_);
  return wrong ? "a product with a known answer is wrong: " + *wrong : "";
}

// Rank r of a group puts in (i + 1) (r mod 16 + 1) as element i.
std::string LightCheck::sum(Axis axis) {
  Comm& comm = mesh_.along(axis);
  std::array<float, kSum> values{};
  for (int64_t i = 0; i < kSum; ++i) values[static_cast<size_t>(i)] = static_cast<float>((i + 1) * (comm.rank() % 16 + 1));
  int64_t factor = 0;
  for (int r = 0; r < comm.size(); ++r) factor += r % 16 + 1;
  device_.upload(sum_, values.data());
  comm.all_reduce(sum_);
  device_.download(values.data(), sum_);
  for (int64_t i = 0; i < kSum; ++i)
    if (const float got = values[static_cast<size_t>(i)], known = static_cast<float>((i + 1) * factor); got != known)
      return fmt::format("a sum over {} with a known answer is wrong: element {} is {}, not {}", name_of(axis), i, got, known);
  return {};
}

std::string LightCheck::sums() {
  std::string words;
  for (const Axis axis : kGrid) {
    if (mesh_.along(axis).size() == 1) continue;
    if (std::string wrong = sum(axis); words.empty()) words = std::move(wrong);  // all axes, so that no peer waits
  }
  return words;
}

std::string LightCheck::rope() {
  if (!rope_.defined()) return {};
  const std::string wrong = wrong_rope(device_, rope_, frequencies_, kRopeRows);
  return wrong.empty() ? "" : fmt::format("the table of RoPE on pipeline stage {} is not that of the config: {}", mesh_.coord().pp, wrong);
}

void LightCheck::check(int64_t step) {
  std::string words = product();
  if (words.empty()) words = rope();
  if (std::string wrong = sums(); words.empty()) words = std::move(wrong);
  LightVerdict own;
  if (!words.empty()) {
    own.rank = rank_of(mesh_.coord(), mesh_.shape());
    words = fmt::format("rank {} on {}: {}", own.rank, host_name(), words);
    std::memcpy(own.words.data(), words.data(), std::min(words.size(), own.words.size() - 1));
  }
  if (sum_over(mesh_, own.rank < 0 ? 0 : 1) == 0) return;
  fail<NumericalError>("step {}: {}", step, lowest_over(mesh_, own).words.data());
}

}  // namespace hlat
