// The rules that watch a run, by name: loss.alarms says which of them do. What each looks at stands in alarm/rules.h, docs/alarms.md
// explains them.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlat {

enum class AlarmRule : uint8_t {
  grad_growth,
  loss_rise,
  spike,
  leak,
  dead_layer,
  exploding_layer,
  attention_logits,
  drift,
  lost_updates,
  repetition,
  moments,
  probe_gap,
  position_loss,
  wrong_update,
  fp8_range
};
inline constexpr size_t kAlarmRules = 15;
inline constexpr std::array<std::string_view, kAlarmRules> kAlarmNames = {
    "grad_growth",  "loss_rise",  "spike",   "leak",      "dead_layer",    "exploding_layer", "attention_logits", "drift",
    "lost_updates", "repetition", "moments", "probe_gap", "position_loss", "wrong_update",    "fp8_range"};

inline std::string_view name_of(AlarmRule rule) { return kAlarmNames[static_cast<size_t>(rule)]; }

using AlarmSet = std::bitset<kAlarmRules>;  // by AlarmRule

// "all", "none", or "leak, spike". What is wrong goes to `problems`.
AlarmSet parse_alarms(std::string_view text, std::vector<std::string>& problems);

}  // namespace hlat
