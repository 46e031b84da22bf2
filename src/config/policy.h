// The enumerations of a config.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hlat {

enum class PrecisionKind : uint8_t { fp32, mixed, mixed_sr, bf16_sr, bf16, fp8, fp8_sr };
enum class ScheduleKind : uint8_t { cosine_clamped, cosine, linear, constant, warmup_stable_decay };
enum class RecomputeKind : uint8_t { none, selective, full };

// Names in the order of the enumerators.
inline constexpr std::array<std::string_view, 7> kPrecisionNames = {"fp32", "mixed", "mixed_sr", "bf16_sr", "bf16", "fp8", "fp8_sr"};
inline constexpr std::array<std::string_view, 5> kScheduleNames = {"cosine_clamped", "cosine", "linear", "constant", "warmup_stable_decay"};

std::string_view name_of(PrecisionKind k);
std::string_view name_of(ScheduleKind k);

// Which blocks forget what. `every` = k > 0 applies `full` to blocks 0, k, 2k, ... and keeps the rest.
struct Recompute {
  RecomputeKind kind = RecomputeKind::none;
  int64_t every = 0;
  bool operator==(const Recompute&) const = default;
  std::string str() const;  // none | selective | full | every:K
};

// The inverse of str(): false, and `out` as it was, when the text is no policy.
bool parse_recompute(std::string_view text, Recompute& out);

}  // namespace hlat
