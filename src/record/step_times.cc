#include "record/step_times.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/median.h"

namespace hlat {

namespace {

// The number behind "key": in a line that MetricsWriter wrote, where each key stands once.
template <class Number>
std::optional<Number> number_of(std::string_view line, std::string_view quoted_key) {
  const size_t at = line.find(quoted_key);
  if (at == std::string_view::npos) return {};
  Number value{};
  const char* begin = line.data() + at + quoted_key.size();
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<RecordedStep> read_step_times(const std::filesystem::path& metrics) {
  std::vector<RecordedStep> out;
  std::ifstream in(metrics, std::ios::binary);
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const auto step = number_of<int64_t>(line, "\"step\":");
    const auto seconds = number_of<double>(line, "\"step_s\":");
    if (!step || !seconds) continue;
    const bool computed = line.find("\"tokens_per_s\":") != std::string::npos;
    out.push_back({*step, *seconds, number_of<double>(line, "\"save_wait_s\":").value_or(0), computed});
  }
  return out;
}

double written_at(const std::filesystem::path& file) {
  struct stat info {};
  if (stat(file.c_str(), &info) != 0) return 0;
  return static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
}

StepSplit split_steps(const std::vector<RecordedStep>& steps, const std::set<int64_t>& first) {
  StepSplit out;
  if (steps.empty()) return out;
  std::vector<double> seconds;
  for (const RecordedStep& s : steps) {
    out.seconds += s.seconds, out.saves += s.save_wait_s;
    if (s.computed) seconds.push_back(s.seconds);
  }
  if (seconds.empty()) return out;
  out.median = upper_median(std::move(seconds));
  double waited = 0;  // by steps before the end of a save, and not yet found in them
  for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
    if (s->save_wait_s > 0) waited = s->save_wait_s;
    if (s->seconds <= kSlowFactor * out.median) continue;
    double above = s->seconds - out.median;
    const double known = std::min(above, waited);
    above -= known, waited -= known;
    (first.contains(s->step) ? out.first : out.slow) += above;
  }
  return out;
}

}  // namespace hlat
