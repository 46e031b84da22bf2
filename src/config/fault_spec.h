// Faults that can be planted, and how they are written: "kill rank=1 step=20; hang rank=any step=40". A fault is a kind and words
// key=value; semicolons stand between faults. Which keys a kind takes, and which it needs, stands in one table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hlat {

enum class FaultKind : uint8_t {
  kill,
  crash,
  stop,
  hang,
  hang_start,
  slow,
  error,
  nan,
  spike,
  bitflip_grad,
  bitflip_weight,
  lost,
  disk_full,
  corrupt,
  host,
  leak,
  logits,
  recompute,
  drop_share,
  scale_grad,
  rope,
  bias_correction,
  repeat,
  check_matmul,
  check_slow,
  check_comm,
  check_disk
};
inline constexpr int kFaultKinds = 27;

// Whether a kind is drawn at random: never, when fault.kinds names it, or also when fault.kinds is empty.
enum class FaultDraw : uint8_t { never, named, always };

struct FaultKindRow {
  FaultKind kind;
  std::string_view name;
  std::string_view keys;  // that it takes, with blanks between them; one that it needs ends with !
  FaultDraw draw;
  std::string_view help;
};
std::span<const FaultKindRow> fault_kinds();  // by FaultKind
const FaultKindRow& fault_row(FaultKind kind);

// Phases of the start-up in which a rank can be made to hang, and how their words begin (StartWatch::begin).
struct FaultPhase {
  std::string_view name;
  std::string_view words;
};
std::span<const FaultPhase> fault_phases();

struct FaultSpec {
  FaultKind kind = FaultKind::kill;
  std::optional<int64_t> rank = {};  // none: any, chosen by fault.seed
  int64_t step = 0;                  // 0: not given
  std::string phase = {};            // a FaultPhase
  std::string tensor = {};           // of the model; empty: chosen by fault.seed
  std::string axis = {};             // tp | pp | dp; empty: the first of dp, tp and pp that has peers
  double factor = 0;                 // 0: not given
  double seconds = 0;                // 0: not given
  int64_t steps = 0;                 // 0: not given
  int64_t times = 1;

  std::string text() const;  // in one form, without times: what a fault is known by
  bool operator==(const FaultSpec&) const = default;
};

// Faults of one text occur once here, with the sum of their times. What is wrong goes to `problems`, all of it.
std::vector<FaultSpec> parse_faults(std::string_view text, std::vector<std::string>& problems);

// "kill, hang"; empty: all that are drawn always.
std::vector<FaultKind> parse_fault_kinds(std::string_view text, std::vector<std::string>& problems);

}  // namespace hlat
