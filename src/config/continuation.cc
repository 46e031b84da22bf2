#include "config/continuation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "config/saved.h"

namespace hlat {
namespace {

enum class Rule {
  free,      // may change
  unused,    // says nothing once there are weights
  fixed,     // may not
  fork_only  // with checkpoint.resume_from
};

struct RuleRow {
  std::string_view key;  // or "section.*": those of the section that have no row
  Rule rule;
  std::string_view advice = "";  // for a contradiction
};

constexpr std::string_view kNewRun = "only a new run can have another one: give it its own run.dir, or --fresh to set the old run aside";
constexpr std::string_view kNewRunOfWeights =
    "only a new run can have another one: checkpoint.init_from starts it with the weights of this one, in its own run.dir or with --fresh";
constexpr std::string_view kDocuments = "it decides which documents come next: keep it, or start a new run with checkpoint.init_from";

constexpr std::array kRows = {
    RuleRow{"run.*", Rule::free},
    RuleRow{"run.seed", Rule::fixed, "rounding noise follows from it: keep it, or start a new run with checkpoint.init_from"},
    RuleRow{"model.*", Rule::fixed, kNewRun},
    RuleRow{"model.preset", Rule::unused},
    RuleRow{"model.init_std", Rule::unused},
    RuleRow{"model.scaled_init", Rule::unused},
    RuleRow{"model.coalesced", Rule::free},
    RuleRow{"train.*", Rule::fixed, kNewRunOfWeights},
    RuleRow{"train.steps", Rule::free},
    RuleRow{"train.tokens", Rule::free},
    RuleRow{"train.epochs", Rule::free},
    RuleRow{"train.micro_batch", Rule::free},
    RuleRow{"train.precision", Rule::free},
    RuleRow{"train.recompute", Rule::free},
    RuleRow{"train.loss_chunk", Rule::free},
    RuleRow{"precision.*", Rule::free},
    RuleRow{"parallel.*", Rule::free},
    RuleRow{"optim.*", Rule::fork_only, "checkpoint.resume_from=STEP forks the run from that checkpoint with the new value"},
    RuleRow{"data.*", Rule::free},
    RuleRow{"data.seed", Rule::fixed, kDocuments},
    RuleRow{"data.validation", Rule::fixed, kDocuments},
    RuleRow{"data.bos", Rule::fixed, kDocuments},
    RuleRow{"data.eos", Rule::fixed, kDocuments},
    RuleRow{"checkpoint.*", Rule::free},
    RuleRow{"eval.*", Rule::free},
    RuleRow{"loss.*", Rule::free},
    RuleRow{"monitor.*", Rule::free},
    RuleRow{"launch.*", Rule::free},
    RuleRow{"fault.*", Rule::free},
    RuleRow{"device.*", Rule::free},
};

const RuleRow& row_of(std::string_view key) {
  const auto find = [](const std::string& name) {
    return std::find_if(kRows.begin(), kRows.end(), [&](const RuleRow& row) { return row.key == name; });
  };
  const auto* row = find(std::string(key));
  if (row == kRows.end()) row = find(fmt::format("{}.*", key.substr(0, key.find('.'))));
  HLAT_CHECK(row != kRows.end(), "nothing says whether {} may change in a continued run", key);
  return *row;
}

std::string may_change() {
  std::vector<std::string_view> keys, but;
  for (const RuleRow& row : kRows) (row.rule == Rule::free ? keys : but).push_back(row.key);
  std::string text;
  for (const std::string_view key : keys) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", key);
    if (!key.ends_with('*')) continue;
    std::vector<std::string_view> kept;
    for (const std::string_view other : but)
      if (other.starts_with(key.substr(0, key.size() - 1))) kept.push_back(other);
    if (!kept.empty()) text += fmt::format(" (but {})", fmt::join(kept, ", "));
  }
  return "a continued run may change " + text;
}

// The shape with what says nothing left out, so that two ways to write one model are equal.
ModelConfig plain(ModelConfig m) {
  const ModelConfig defaults;
  m.kv_heads = m.kv();
  if (m.rope_scaling == "none") m.rope_factor = defaults.rope_factor;
  if (m.rope_scaling != "llama3") {
    m.rope_low_freq_factor = defaults.rope_low_freq_factor;
    m.rope_high_freq_factor = defaults.rope_high_freq_factor;
    m.rope_original_len = defaults.rope_original_len;
  }
  return m;
}

int64_t schedule_end(const Config& c) { return c.optim.schedule_steps > 0 ? c.optim.schedule_steps : c.train.steps; }

class Comparison {
 public:
  Comparison(const Config& saved, const Config& now, bool forked) : saved_(saved), now_(now), forked_(forked) {
    saved_.model = plain(saved.model), now_.model = plain(now.model);
  }

  std::vector<std::string> run() {
    for (const KeyChange& change : config_changes(saved_, now_)) judge(change);
    judge_schedule_end();
    if (problems_.empty()) return std::move(lines_);
    problems_.push_back(may_change());
    throw UsageError(fmt::format("{}", fmt::join(problems_, "\n")));
  }

 private:
  void judge(const KeyChange& change) {
    if (change.key == "model.tied") return refuse(change, tied_advice());
    if (change.key == "optim.schedule_steps") return;  // where the schedule ends is what counts
    const RuleRow& row = row_of(change.key);
    switch (row.rule) {
      case Rule::free: return lines_.push_back(change.str());
      case Rule::unused: return lines_.push_back(change.str() + ": says nothing about weights that exist");
      case Rule::fixed: return refuse(change, row.advice);
      case Rule::fork_only: return forked_ ? lines_.push_back(change.str()) : refuse(change, row.advice);
    }
  }

  std::string_view tied_advice() const {
    if (saved_.model.tied)
      return "an output head of its own needs a new run: checkpoint.init_from gives it a copy of the embedding matrix to start with";
    return "the saved run has an output head of its own, which would be lost";
  }

  // An end that moves with the length of the run would change the learning rate behind the user's back; one that is given is his word.
  void judge_schedule_end() {
    const int64_t was = schedule_end(saved_), is = schedule_end(now_);
    if (was == is) return;
    const bool given = now_.optim.schedule_steps > 0;
    const bool matters = saved_.optim.schedule != ScheduleKind::constant || now_.optim.schedule != ScheduleKind::constant;
    if (given || !matters) return lines_.push_back(fmt::format("the learning-rate schedule ends at step {}, before at {}", is, was));
    problems_.push_back(
        fmt::format("optim.schedule_steps = auto: train.steps is {} now, and the learning-rate schedule of the saved run ends at {}; give "
                    "optim.schedule_steps={} to keep its curve, or optim.schedule_steps={} for a new one",
                    is, was, was, is));
  }

  void refuse(const KeyChange& change, std::string_view advice) {
    const auto quoted = [](const std::string& text) { return text.empty() ? "\"\"" : text; };
    problems_.push_back(fmt::format("{} = {}: the saved run has {}; {}", change.key, quoted(change.is), quoted(change.was), advice));
  }

  Config saved_, now_;
  bool forked_;
  std::vector<std::string> lines_, problems_;
};

}  // namespace

std::vector<std::string> check_continuation(const Config& saved, const Config& now, bool forked) {
  return Comparison(saved, now, forked).run();
}

}  // namespace hlat
