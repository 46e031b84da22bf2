#include "config/fault_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "config/nearest.h"

namespace hlat {
namespace {

using Problems = std::vector<std::string>;

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::array kFaultAxes = {std::string_view("tp"), std::string_view("pp"), std::string_view("dp")};

constexpr std::array<FaultKindRow, kFaultKinds> kFaultRows = {{
    {FaultKind::kill, "kill", "rank step! times", FaultDraw::always, "the rank's process is killed (SIGKILL)"},
    {FaultKind::crash, "crash", "rank step! times", FaultDraw::always, "the rank's process crashes (SIGSEGV)"},
    {FaultKind::stop, "stop", "rank step! times", FaultDraw::always, "the rank's process is stopped (SIGSTOP)"},
    {FaultKind::hang, "hang", "rank step! seconds times", FaultDraw::always,
     "the rank does nothing any more, or nothing for seconds=, at the beginning of the step"},
    {FaultKind::hang_start, "hang_start", "rank phase! seconds times", FaultDraw::never,
     "the rank does nothing any more, or nothing for seconds=, when a phase of the start-up begins"},
    {FaultKind::slow, "slow", "rank step! steps factor seconds times", FaultDraw::always,
     "steps= steps (10) of the rank take factor= times as long (4), or seconds= longer"},
    {FaultKind::error, "error", "rank step! times", FaultDraw::always, "the rank throws an error that nothing handles"},
    {FaultKind::nan, "nan", "rank step! tensor times", FaultDraw::always,
     "a NaN in one element of a gradient, before it is summed over ranks"},
    {FaultKind::spike, "spike", "step! factor times", FaultDraw::never,
     "the loss and all gradients of the step are multiplied by factor= (100), on all ranks"},
    {FaultKind::bitflip_grad, "bitflip_grad", "rank step! tensor times", FaultDraw::named,
     "the highest bit of an exponent flips in a gradient that is about to be summed over dp"},
    {FaultKind::bitflip_weight, "bitflip_weight", "rank step! tensor times", FaultDraw::named,
     "the highest bit of an exponent flips in a weight, after the update of the step"},
    {FaultKind::lost, "lost", "rank step! axis times", FaultDraw::always,
     "from the step on the rank takes no part in moving tensors along an axis, as if its messages were lost"},
    {FaultKind::disk_full, "disk_full", "rank step times", FaultDraw::always,
     "the first save after the step finds no space on the disk of the rank (ENOSPC)"},
    {FaultKind::corrupt, "corrupt", "rank step times", FaultDraw::always,
     "bytes of the first checkpoint after the step that has an older one behind it are changed, and the rank is killed"},
    {FaultKind::host, "host", "rank step! times", FaultDraw::named,
     "all ranks on the host of the rank are killed, and the agent of hlat launch"},
    {FaultKind::leak, "leak", "step steps times", FaultDraw::never,
     "the attention mask of the first block is one token too wide: a query sees the key after its own, on all ranks"},
    {FaultKind::logits, "logits", "step steps factor times", FaultDraw::never,
     "logits are multiplied by factor= (8), and their gradients are those of such logits, on all ranks"},
    {FaultKind::recompute, "recompute", "step steps times", FaultDraw::never,
     "a backward that computes the first block again does so with another epsilon of its norms, on all ranks"},
    {FaultKind::drop_share, "drop_share", "rank step steps tensor times", FaultDraw::never,
     "the rank's share of one bucket, that of the tensor, is missing in the sum of gradients over dp"},
    {FaultKind::scale_grad, "scale_grad", "rank step steps tensor factor times", FaultDraw::never,
     "the rank's gradients, or that of the tensor, are multiplied by factor= (2)"},
    {FaultKind::rope, "rope", "rank step factor times", FaultDraw::never,
     "RoPE has another base on the pipeline stage of the rank: model.rope_theta times factor= (100)"},
    {FaultKind::bias_correction, "bias_correction", "step steps times", FaultDraw::never,
     "AdamW forgets the bias correction of its moments, on all ranks"},
    {FaultKind::repeat, "repeat", "step steps times", FaultDraw::never,
     "a source of data is read twice: every second row of a batch is the one before it, on all ranks"},
    {FaultKind::check_matmul, "check_matmul", "rank! times", FaultDraw::never, "hlat check: a matmul of the rank is wrong"},
    {FaultKind::check_slow, "check_slow", "rank! factor times", FaultDraw::never, "hlat check: the rank is slow"},
    {FaultKind::check_comm, "check_comm", "rank! times", FaultDraw::never, "hlat check: what the rank receives is wrong"},
    {FaultKind::check_disk, "check_disk", "rank! times", FaultDraw::never, "hlat check: the disk of the rank is full"},
}};

constexpr std::array kFaultPhases = {
    FaultPhase{"mpi", "joining the other ranks"},   FaultPhase{"checkpoints", "looking for checkpoints"},
    FaultPhase{"device", "preparing the device"},   FaultPhase{"data", "opening the data"},
    FaultPhase{"connect", "connecting the groups"}, FaultPhase{"folder", "opening the run folder"},
    FaultPhase{"memory", "taking memory"},          FaultPhase{"init", "making the initial weights"},
    FaultPhase{"load", "loading the checkpoint"},   FaultPhase{"step", "the first step"},
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// Its parts, without blanks around them; empty ones are left out.
std::vector<std::string_view> parts_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    if (const std::string_view part = trimmed(text.substr(0, end)); !part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string unknown_word(std::string_view what, std::string_view word, std::span<const std::string_view> names) {
  return fmt::format("there is no {} {}; {}", what, word, alternatives(word, names));
}

std::vector<std::string_view> kind_names(bool random_only) {
  std::vector<std::string_view> names;
  for (const FaultKindRow& row : kFaultRows)
    if (!random_only || row.draw != FaultDraw::never) names.push_back(row.name);
  return names;
}

const FaultKindRow* find_kind(std::string_view name) {
  const auto* row = std::find_if(kFaultRows.begin(), kFaultRows.end(), [&](const FaultKindRow& r) { return r.name == name; });
  return row == kFaultRows.end() ? nullptr : row;
}

template <class T>
bool read_value(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string read_count(std::string_view text, int64_t& value) {
  return read_value(text, value) && value > 0 ? "" : "must be an integer above 0";
}

std::string read_amount(std::string_view text, double& value) {
  return read_value(text, value) && std::isfinite(value) && value > 0 ? "" : "must be a number above 0";
}

std::string read_word(std::string_view what, std::string_view text, std::span<const std::string_view> names, std::string& value) {
  value = text;
  return std::find(names.begin(), names.end(), text) != names.end() ? "" : unknown_word(what, text, names);
}

std::string read_rank(std::string_view text, std::optional<int64_t>& rank) {
  rank.reset();
  if (text == "any") return {};
  int64_t value = 0;
  if (!read_value(text, value) || value < 0) return "must be a rank, from 0 on, or any";
  rank = value;
  return {};
}

// Returns what is wrong with the value.
std::string read_key(std::string_view key, std::string_view value, FaultSpec& spec) {
  if (value.empty()) return "needs a value";
  if (key == "rank") return read_rank(value, spec.rank);
  if (key == "step") return read_count(value, spec.step);
  if (key == "steps") return read_count(value, spec.steps);
  if (key == "times") return read_count(value, spec.times);
  if (key == "factor") return read_amount(value, spec.factor);
  if (key == "seconds") return read_amount(value, spec.seconds);
  if (key == "axis") return read_word("axis", value, kFaultAxes, spec.axis);
  if (key == "tensor") return spec.tensor = value, "";
  std::vector<std::string_view> phases;
  for (const FaultPhase& phase : kFaultPhases) phases.push_back(phase.name);
  return read_word("phase", value, phases, spec.phase);
}

// The keys of a kind, in order, and the words of one fault that have not been read.
void read_words(const FaultKindRow& row, std::span<const std::string_view> words, FaultSpec& spec, Problems& problems) {
  std::vector<std::string_view> takes, needs, given;
  for (std::string_view key : parts_of(row.keys, " ")) {
    const bool needed = key.ends_with('!');
    if (needed) key.remove_suffix(1), needs.push_back(key);
    takes.push_back(key);
  }
  const auto has = [](const auto& list, std::string_view key) { return std::find(list.begin(), list.end(), key) != list.end(); };
  for (const std::string_view word : words) {
    const size_t eq = std::min(word.find('='), word.size());
    const std::string_view key = word.substr(0, eq), value = word.substr(std::min(eq + 1, word.size()));
    std::string problem;
    if (eq == word.size())
      problem = fmt::format("{} is no key=value", word);
    else if (!has(takes, key))
      problem = fmt::format("it takes {}, not {}", fmt::join(takes, ", "), key);
    else if (has(given, key))
      problem = fmt::format("{} is given twice", key);
    else if (const std::string wrong = read_key(key, value, spec); !wrong.empty())
      problem = fmt::format("{}: {}", word, wrong);
    given.push_back(key);
    if (!problem.empty()) problems.push_back(fmt::format("{}: {}", row.name, problem));
  }
  for (const std::string_view key : needs)
    if (!has(given, key)) problems.push_back(fmt::format("{}: it needs {}=", row.name, key));
}

}  // namespace

std::span<const FaultKindRow> fault_kinds() { return kFaultRows; }
std::span<const FaultPhase> fault_phases() { return kFaultPhases; }

const FaultKindRow& fault_row(FaultKind kind) {
  const FaultKindRow& row = kFaultRows[static_cast<size_t>(kind)];
  HLAT_CHECK(row.kind == kind, "the table of faults is not in the order of its kinds at {}", row.name);
  return row;
}

std::string FaultSpec::text() const {
  const std::string_view keys = fault_row(kind).keys;
  std::string text(fault_row(kind).name);
  if (keys.find("rank") != std::string_view::npos) text += " rank=" + (rank ? std::to_string(*rank) : "any");
  if (step > 0) text += fmt::format(" step={}", step);
  if (steps > 0) text += fmt::format(" steps={}", steps);
  if (factor > 0) text += fmt::format(" factor={}", factor);
  if (seconds > 0) text += fmt::format(" seconds={}", seconds);
  for (const auto& [key, value] : {std::pair{"phase", &phase}, {"axis", &axis}, {"tensor", &tensor}})
    if (!value->empty()) text += fmt::format(" {}={}", key, *value);
  return text;
}

std::vector<FaultSpec> parse_faults(std::string_view text, Problems& problems) {
  std::vector<FaultSpec> faults;
  for (const std::string_view one : parts_of(text, ";")) {
    const std::vector<std::string_view> words = parts_of(one, kBlanks);
    const FaultKindRow* row = find_kind(words.front());
    if (row == nullptr) {
      problems.push_back(unknown_word("fault", words.front(), kind_names(false)));
      continue;
    }
    FaultSpec spec{.kind = row->kind};
    read_words(*row, std::span(words).subspan(1), spec, problems);
    const auto same = std::find_if(faults.begin(), faults.end(), [&](const FaultSpec& f) { return f.text() == spec.text(); });
    if (same == faults.end())
      faults.push_back(std::move(spec));
    else
      same->times += spec.times;
  }
  return faults;
}

std::vector<FaultKind> parse_fault_kinds(std::string_view text, Problems& problems) {
  std::vector<FaultKind> kinds;
  for (const std::string_view name : parts_of(text, ",")) {
    const FaultKindRow* row = find_kind(name);
    if (row == nullptr)
      problems.push_back(unknown_word("fault", name, kind_names(true)));
    else if (row->draw == FaultDraw::never)
      problems.push_back(fmt::format("{} cannot come at random: plant it with fault.inject", name));
    else if (std::find(kinds.begin(), kinds.end(), row->kind) == kinds.end())
      kinds.push_back(row->kind);
  }
  if (!trimmed(text).empty()) return kinds;
  for (const FaultKindRow& row : kFaultRows)
    if (row.draw == FaultDraw::always) kinds.push_back(row.kind);
  return kinds;
}

}  // namespace hlat
