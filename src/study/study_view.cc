#include "study/study_view.h"

#include <fmt/format.h>

#include <cmath>

#include "base/format.h"

namespace hlat {
namespace {

constexpr double kLiveView = 0.5, kPlainView = 30;  // seconds between

}  // namespace

std::string run_line(const RunShown& run) {
  std::string text = run.name;
  if (run.step == 0) return text + fmt::format("  starting, {}", format_duration(run.since_s));
  text += run.steps > 0 ? fmt::format("  step {}/{}", run.step, run.steps) : fmt::format("  step {}", run.step);
  if (std::isfinite(run.loss)) text += fmt::format("  loss {:.4f}", run.loss);
  if (run.tokens_per_s > 0) text += fmt::format("  {} tokens/s", format_count(run.tokens_per_s));
  if (run.left_s >= 0) text += fmt::format("  {} left", format_duration(run.left_s));
  return text;
}

StudyView::StudyView(std::ostream& out, std::function<int()> columns, std::function<double()> now)
    : out_(out), columns_(std::move(columns)), now_(std::move(now)), shown_at_(now_()) {}

StudyView::~StudyView() { out_.flush(); }

void StudyView::clear() {
  for (; drawn_ > 0; --drawn_) out_ << "\x1b[1A\r\x1b[K";
}

void StudyView::say(const std::string& text) {
  clear();
  out_ << text << "\n" << std::flush;
  shown_at_ = columns_() > 0 ? 0 : shown_at_;  // the block comes back at once
}

void StudyView::show(const std::vector<RunShown>& runs, const std::string& done) {
  const int columns = columns_();
  if (now_() - shown_at_ < (columns > 0 ? kLiveView : kPlainView)) return;
  shown_at_ = now_();
  clear();
  std::vector<std::string> lines;
  for (const RunShown& run : runs) lines.push_back(run_line(run));
  lines.push_back(done);
  for (const std::string& line : lines) out_ << (columns > 1 ? line.substr(0, static_cast<size_t>(columns) - 1) : line) << "\n";
  if (columns > 0) drawn_ = lines.size();
  out_.flush();
}

}  // namespace hlat
