#include "report/text_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "report/runs_table.h"
#include "report/settings.h"

namespace hlat {

namespace {

constexpr std::array<int, 6> kColors = {34, 33, 32, 35, 36, 31};  // ANSI
constexpr int kLabelWidth = 9;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void see(double v) { low = std::min(low, v), high = std::max(high, v); }
};

struct TextFrame {
  Range steps, values;
  bool logarithmic = false;

  double height_of(double v) const {
    const double low = logarithmic ? std::log(values.low) : values.low, high = logarithmic ? std::log(values.high) : values.high;
    return high > low ? ((logarithmic ? std::log(v) : v) - low) / (high - low) : 0.5;
  }
  double value_at(double height) const {
    if (!logarithmic) return values.low + height * (values.high - values.low);
    return std::exp(std::log(values.low) + height * (std::log(values.high) - std::log(values.low)));
  }
};

// A hundredfold range of positive values is shown by its logarithm.
TextFrame frame_of(const std::vector<TextCurve>& curves) {
  TextFrame frame;
  for (const TextCurve& c : curves)
    for (size_t i = 0; i < c.curve.size(); ++i)
      if (std::isfinite(c.curve.value[i])) frame.steps.see(static_cast<double>(c.curve.step[i])), frame.values.see(c.curve.value[i]);
  frame.logarithmic = frame.values.low > 0 && frame.values.high > 100 * frame.values.low;
  return frame;
}

// Cells of a plot; each has dots of one curve, the last that came there.
class TextCanvas {
 public:
  TextCanvas(const TextStyle& style, int columns) : style_(style), columns_(columns), dots_(cells(), 0), owner_(cells(), -1) {}

  void draw(const Curve& curve, const TextFrame& frame, int owner) {
    const int wide = columns_ * (style_.braille ? 2 : 1), high = style_.height * (style_.braille ? 4 : 1);
    int last_x = -1, last_y = 0;
    for (size_t i = 0; i < curve.size(); ++i) {
      if (!std::isfinite(curve.value[i])) {
        last_x = -1;
        continue;
      }
      const double across = frame.steps.high > frame.steps.low
                                ? (static_cast<double>(curve.step[i]) - frame.steps.low) / (frame.steps.high - frame.steps.low)
                                : 0.5;
      const int x = static_cast<int>(std::lround(across * (wide - 1)));
      const int y = static_cast<int>(std::lround((1 - frame.height_of(curve.value[i])) * (high - 1)));
      if (last_x < 0) last_x = x, last_y = y;
      line(last_x, last_y, x, y, owner);
      last_x = x, last_y = y;
    }
  }

  std::string row(int r, bool letters) const {
    std::string text;
    for (int c = 0; c < columns_; ++c) {
      const size_t at = static_cast<size_t>(r) * static_cast<size_t>(columns_) + static_cast<size_t>(c);
      if (owner_[at] < 0) {
        text += ' ';
        continue;
      }
      const std::string cell = style_.braille ? braille(dots_[at]) : std::string(1, letters ? letter(owner_[at]) : '*');
      text += style_.color ? fmt::format("\x1b[{}m{}\x1b[0m", kColors[static_cast<size_t>(owner_[at]) % kColors.size()], cell) : cell;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }
  static char letter(int owner) { return static_cast<char>('a' + owner % 26); }

 private:
  size_t cells() const { return static_cast<size_t>(columns_) * static_cast<size_t>(style_.height); }

  void line(int x0, int y0, int x1, int y1, int owner) {
    const int steps = std::max({1, std::abs(x1 - x0), std::abs(y1 - y0)});
    for (int k = 0; k <= steps; ++k) dot(x0 + (x1 - x0) * k / steps, y0 + (y1 - y0) * k / steps, owner);
  }

  void dot(int x, int y, int owner) {
    constexpr std::array<std::array<unsigned char, 2>, 4> kBits = {{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    const int dx = style_.braille ? 2 : 1, dy = style_.braille ? 4 : 1;
    const size_t at = static_cast<size_t>(y / dy) * static_cast<size_t>(columns_) + static_cast<size_t>(x / dx);
    dots_[at] = static_cast<unsigned char>(dots_[at] | kBits[static_cast<size_t>(y % dy)][static_cast<size_t>(x % dx)]);
    owner_[at] = owner;
  }

  static std::string braille(unsigned char dots) {  // U+2800 and its dots, in UTF-8
    return {static_cast<char>(0xE2), static_cast<char>(0xA0 | (dots >> 6)), static_cast<char>(0x80 | (dots & 0x3F))};
  }

  TextStyle style_;
  int columns_;
  std::vector<unsigned char> dots_;
  std::vector<int> owner_;
};

std::string value_label(double v) {
  const double size = std::abs(v);
  if (size >= 1e4) return format_count(v);
  return size > 0 && size < 1e-3 ? fmt::format("{:.2e}", v) : fmt::format("{:.4g}", v);
}

}  // namespace

std::string text_plot(const std::string& title, const std::vector<TextCurve>& given, const TextStyle& style) {
  std::vector<TextCurve> curves;
  std::copy_if(given.begin(), given.end(), std::back_inserter(curves), [](const TextCurve& c) { return c.curve.has_values(); });
  if (curves.empty()) return "";
  TextStyle own = style;
  const bool letters = curves.size() > 1 && !style.color;
  if (letters) own.braille = false;  // without colours only letters tell curves apart
  const int columns = std::max(16, own.width - kLabelWidth - 2);
  const TextFrame frame = frame_of(curves);
  TextCanvas canvas(own, columns);
  for (size_t i = 0; i < curves.size(); ++i)
    canvas.draw(thinned(curves[i].curve, size_t{8} * static_cast<size_t>(columns)), frame, static_cast<int>(i));
  std::string text = title + (frame.logarithmic ? " (log)" : "") + "\n";
  for (int r = 0; r < own.height; ++r) {
    const bool labelled = r == 0 || r == own.height - 1 || r == own.height / 2;
    const double height = 1 - static_cast<double>(r) / std::max(1, own.height - 1);
    text += fmt::format("{:>{}} |{}\n", labelled ? value_label(frame.value_at(height)) : "", kLabelWidth, canvas.row(r, letters));
  }
  const std::string first = fmt::format("{:.0f}", frame.steps.low), last = fmt::format("step {:.0f}", frame.steps.high);
  text += fmt::format("{:>{}} +{}\n", "", kLabelWidth, std::string(static_cast<size_t>(columns), '-'));
  text += fmt::format("{:>{}}  {}{:>{}}\n", "", kLabelWidth, first, last, std::max(1, columns - static_cast<int>(first.size())));
  for (size_t i = 0; i < curves.size() && curves.size() > 1; ++i)
    text += style.color ? fmt::format("{:>{}}  \x1b[{}m--\x1b[0m {}\n", "", kLabelWidth, kColors[i % kColors.size()], curves[i].name)
                        : fmt::format("{:>{}}  {}  {}\n", "", kLabelWidth, TextCanvas::letter(static_cast<int>(i)), curves[i].name);
  return text + "\n";
}

std::string text_report(const std::vector<ReportRun>& runs, const TextStyle& style) {
  constexpr std::array<std::pair<const char*, const char*>, 5> kShown = {{{"loss", "loss"},
                                                                          {"val_loss", "validation loss"},
                                                                          {"grad_norm", "gradient norm"},
                                                                          {"lr", "learning rate"},
                                                                          {"tokens_per_s", "tokens/s"}}};
  std::string text;
  for (const auto& [key, title] : kShown) {
    std::vector<TextCurve> curves;
    for (const ReportRun& run : runs) curves.push_back({run.name, run.steps.curve(key)});
    text += text_plot(title, curves, style);
  }
  std::vector<RunRow> rows;
  for (const ReportRun& run : runs) rows.push_back(row_of(run));
  const std::string settings = settings_text(runs, style.width);
  return text + rows_text(rows, style.width) + (settings.empty() ? "" : "\nsettings that differ\n" + settings);
}

bool is_utf8_locale(const char* lc_all, const char* lc_ctype, const char* lang) {
  for (const char* value : {lc_all, lc_ctype, lang}) {
    if (value == nullptr || *value == '\0') continue;
    std::string text = value;
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;  // the first that is set counts
  }
  return false;
}

}  // namespace hlat
