#include "record/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/machine.h"
#include "record/utilization.h"

namespace hlat {
namespace {

constexpr double kLiveIntervalS = 0.1, kPlainIntervalS = 1;

}  // namespace

ProgressOptions progress_options(int fd, int64_t total_steps) {
  ProgressOptions o;
  o.total_steps = total_steps;
  o.now = now_s;
  // Behind a launcher, which has the terminal and says how wide it is.
  const char* columns = std::getenv(kColumnsVariable);
  const int given = columns == nullptr ? 0 : std::atoi(columns);
  o.live = given > 0 || live_columns(fd) > 0;
  o.width = [fd, given] { return given > 0 ? given : std::max(1, live_columns(fd)); };
  return o;
}

int live_columns(int fd) {
  const char* term = std::getenv("TERM");
  if (isatty(fd) != 1 || term == nullptr || std::string_view(term) == "dumb") return 0;
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? int{size.ws_col} : 80;
}

std::string progress_line(const StepMetrics& m, int64_t total_steps, double elapsed_s, double eta_s, int width, int64_t alarms) {
  std::vector<std::string> parts;
  parts.push_back(fmt::format("step {:{}}/{}", m.step, fmt::formatted_size("{}", total_steps), total_steps));
  parts.push_back(!m.computed          ? "skipped"
                  : m.floor == m.floor ? fmt::format("loss {:.4f} (floor {:.4f})", m.loss, m.floor)
                                       : fmt::format("loss {:.4f}", m.loss));
  if (alarms > 0) parts.push_back(fmt::format("{} alarm{}", alarms, alarms == 1 ? "" : "s"));
  if (m.val_loss) parts.push_back(fmt::format("held out {:.4f}", *m.val_loss));
  if (m.computed) parts.push_back(format_count(m.tokens_per_s) + " tokens/s");
  if (m.computed && is_utilization(m.mfu)) parts.push_back(fmt::format("MFU {:.1f}%", 100 * m.mfu));
  if (m.goodput) parts.push_back(fmt::format("goodput {:.1f}%", 100 * *m.goodput));
  if (m.step < total_steps) parts.push_back("ETA " + format_duration(eta_s));
  parts.push_back("elapsed " + format_duration(elapsed_s));
  std::string line;
  for (const std::string& part : parts) {
    const std::string more = line.empty() ? part : "  " + part;
    if (width > 0 && !line.empty() && line.size() + more.size() > static_cast<size_t>(width)) break;
    line += more;
  }
  return width > 0 ? line.substr(0, static_cast<size_t>(width)) : line;
}

Progress::Progress(std::ostream& out, ProgressOptions options) : out_(out), options_(std::move(options)), start_(options_.now()) {}

Progress::~Progress() {
  try {
    finish();
  } catch (...) {  // nobody is left to tell
  }
}

void Progress::step(const StepMetrics& m) {
  const double now = options_.now();
  ++steps_seen_;
  const double interval = options_.live ? kLiveIntervalS : kPlainIntervalS;
  if (steps_seen_ == 1 || m.step >= options_.total_steps || now - shown_at_ >= interval)
    show(m, now);
  else
    held_back_ = m;
}

void Progress::show(const StepMetrics& m, double now) {
  // Steps seen, not m.step: a continued run starts late and must not count what others did.
  const double elapsed = now - start_;
  const double eta = elapsed / static_cast<double>(steps_seen_) * static_cast<double>(std::max<int64_t>(options_.total_steps - m.step, 0));
  if (options_.live) {
    // One column is left free: some terminals wrap when the last one is filled.
    out_ << '\r' << progress_line(m, options_.total_steps, elapsed, eta, std::max(options_.width() - 1, 1), alarms_) << "\x1b[K";
    line_open_ = true;
  } else {
    out_ << progress_line(m, options_.total_steps, elapsed, eta, 0, alarms_) << '\n';
  }
  out_.flush();
  shown_at_ = now;
  held_back_.reset();
}

void Progress::first_step(int64_t micro, int64_t micros) {
  const double now = options_.now();
  if (!options_.live || steps_seen_ > 0 || (line_open_ && now - shown_at_ < kLiveIntervalS)) return;
  out_ << fmt::format("\rfirst step of {}: micro-batch {} of {}, {}\x1b[K", options_.total_steps, micro + 1, micros,
                      format_duration(now - start_));
  out_.flush();
  line_open_ = true;
  shown_at_ = now;
}

void Progress::say(const std::string& text) {
  out_ << (line_open_ ? "\r" : "") << text << (line_open_ ? "\x1b[K\n" : "\n");
  out_.flush();
  line_open_ = false;
}

void Progress::alarm(const std::string& text) {
  ++alarms_;
  say(text);
}

void Progress::finish() {
  if (held_back_) show(StepMetrics(*held_back_), options_.now());
  if (!line_open_) return;
  out_ << '\n';
  out_.flush();
  line_open_ = false;
}

}  // namespace hlat
