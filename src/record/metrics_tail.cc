#include "record/metrics_tail.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

// The whole lines of a file, the last first.
class LinesFromBehind {
 public:
  explicit LinesFromBehind(const fs::path& file) : file_(file), in_(file, std::ios::binary | std::ios::ate) {
    begin_ = in_ ? static_cast<uint64_t>(in_.tellg()) : 0;
    size_ = begin_;
    size_t newline = std::string::npos;
    while ((newline = ahead_.rfind('\n')) == std::string::npos && load()) {
    }
    ahead_.resize(newline + 1);  // npos + 1 is 0
    whole_ = begin_ + ahead_.size();
  }

  uint64_t file_size() const { return size_; }
  uint64_t whole() const { return whole_; }  // bytes of whole lines
  const std::string& line() const { return line_; }
  uint64_t line_begin() const { return begin_ + ahead_.size(); }

  bool next() {
    if (ahead_.empty() && !load()) return false;
    size_t newline = std::string::npos;
    while ((newline = std::string_view(ahead_).substr(0, ahead_.size() - 1).rfind('\n')) == std::string::npos && load()) {
    }
    line_ = ahead_.substr(newline + 1);
    ahead_.resize(newline + 1);
    return true;
  }

 private:
  bool load() {
    constexpr uint64_t kBlock = 1 << 16;
    if (begin_ == 0) return false;
    std::string block(std::min(kBlock, begin_), '\0');
    begin_ -= block.size();
    in_.seekg(static_cast<std::streamoff>(begin_));
    if (!in_.read(block.data(), static_cast<std::streamsize>(block.size()))) fail<FaultError>("cannot read {}", file_.string());
    ahead_.insert(0, block);
    return true;
  }

  fs::path file_;
  std::ifstream in_;
  uint64_t size_ = 0, whole_ = 0;
  uint64_t begin_ = 0;  // of what was read
  std::string ahead_;   // read and not handed out: whole lines, but for the beginning of the first
  std::string line_;
};

nlohmann::json parsed(const std::string& line) { return nlohmann::json::parse(line, nullptr, false); }

std::optional<int64_t> step_of(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("tokens")) return {};
  const auto step = json.find("step");
  return step != json.end() && step->is_number_integer() ? std::optional(step->get<int64_t>()) : std::nullopt;
}

std::optional<double> value_of(const nlohmann::json& json, const char* key) {
  const auto value = json.find(key);
  return value != json.end() && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

}  // namespace

std::optional<LastStep> last_recorded(const fs::path& metrics) {
  for (LinesFromBehind lines(metrics); lines.next();) {
    const nlohmann::json line = parsed(lines.line());
    if (const auto step = step_of(line))
      return LastStep{.step = *step, .loss = value_of(line, "loss"), .tokens_per_s = value_of(line, "tokens_per_s")};
  }
  return {};
}

std::optional<int64_t> last_recorded_step(const fs::path& metrics) {
  const auto last = last_recorded(metrics);
  return last ? std::optional(last->step) : std::nullopt;
}

MetricsCut cut_metrics(const fs::path& metrics, int64_t step, PreviousRun& previous) {
  MetricsCut result;
  LinesFromBehind lines(metrics);
  uint64_t cut = lines.whole();
  while (!result.kept && lines.next()) {
    const auto found = step_of(parsed(lines.line()));
    if (!found) continue;
    if (*found <= step) {
      result.kept = found;
      continue;
    }
    cut = lines.line_begin();
    result.first_cut = found;
    if (!result.last_cut) result.last_cut = found;
    result.cut_s += value_of(parsed(lines.line()), "step_s").value_or(0);
  }
  if (cut < lines.whole()) {
    const fs::path copy = previous.folder() / metrics.filename();
    OutputFile out(copy, OutputFile::Mode::create_new);
    append_range(metrics, cut, lines.whole(), out);
    previous.sync(copy);
  }
  if (cut < lines.file_size()) cut_file(metrics, cut);
  return result;
}

}  // namespace hlat
