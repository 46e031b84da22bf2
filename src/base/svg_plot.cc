#include "base/svg_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "base/error.h"
#include "base/json_text.h"

namespace hlat {

namespace {

constexpr int kTop = 46, kBottom = 60, kLeft = 84, kGap = 20, kLetter = 7;  // pixels; of a letter of the legend about
// Colours that people who see few of them can tell apart (Okabe and Ito), without the yellow, which is faint on white.
constexpr std::array<const char*, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"};

struct Range {
  double low = 0, high = 1;
};

bool is_drawn(const PlotPoint& p) { return std::isfinite(p.x) && std::isfinite(p.y); }

// Bytes that are no UTF-8 become U+FFFD, as in JSON.
std::string valid_text(std::string_view text) {
  return nlohmann::json::parse(json_text(nlohmann::json(std::string(text)))).get<std::string>();
}

bool has_band(const PlotSeries& s, size_t point) {
  return point < s.band.size() && is_drawn(s.points[point]) && std::isfinite(s.band[point].low) && std::isfinite(s.band[point].high);
}

// Of one coordinate over all series.
Range range_of(const Plot& plot, double PlotPoint::*coordinate, const PlotAxis& axis) {
  bool any = false;
  Range r;
  const auto take = [&](const PlotSeries& s, double v) {
    HLAT_CHECK(!axis.log || v > 0, "{}: {} on a logarithmic axis", s.name, v);
    r = any ? Range{std::min(r.low, v), std::max(r.high, v)} : Range{v, v};
    any = true;
  };
  for (const PlotSeries& s : plot.series)
    for (size_t i = 0; i < s.points.size(); ++i) {
      if (!is_drawn(s.points[i])) continue;
      take(s, s.points[i].*coordinate);
      if (coordinate == &PlotPoint::y && has_band(s, i)) take(s, s.band[i].low), take(s, s.band[i].high);
    }
  if (!any) return axis.log ? Range{1, 10} : Range{0, 1};
  if (axis.from_zero && !axis.log) r = {std::min(0.0, r.low), std::max(0.0, r.high)};
  if (r.high - r.low > 1e-9 * std::max(std::abs(r.low), std::abs(r.high))) return r;
  // One value, up to rounding, stands in the middle.
  if (axis.log) return {r.low / 2, r.high * 2};
  const double margin = r.low == 0 ? 1 : std::abs(r.low) / 2;
  return {r.low - margin, r.high + margin};
}

// One axis on the page: where values are, and its ticks.
class Scale {
 public:
  Scale(const PlotAxis& axis, Range range, double begin, double end, int count) : log_(axis.log), begin_(begin), end_(end) {
    const bool chosen = axis.ticks.empty();
    ticks_ = chosen ? (axis.log ? log_ticks(range.low, range.high, count) : linear_ticks(range.low, range.high, count)) : axis.ticks;
    const auto [least, most] = std::minmax_element(ticks_.begin(), ticks_.end());
    low_ = along(std::min(range.low, *least)), high_ = along(std::max(range.high, *most));
    // Points at the ends of given ticks would stand on the frame.
    if (!chosen && high_ > low_) low_ -= 0.04 * (high_ - low_), high_ += 0.04 * (high_ - low_);
    if (!(high_ > low_)) low_ -= 1, high_ += 1;
  }
  double at(double v) const { return begin_ + (end_ - begin_) * (along(v) - low_) / (high_ - low_); }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  double along(double v) const { return log_ ? std::log10(v) : v; }
  bool log_;
  double begin_, end_, low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

struct Box {
  double left = 0, right = 0, top = 0, bottom = 0;
};

std::string text_at(double x, double y, std::string_view anchor, std::string_view words, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more, xml_text(words));
}

std::string line_between(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
}

std::string axes_svg(const Plot& plot, const Box& box, const Scale& x, const Scale& y) {
  constexpr std::string_view grid = "stroke=\"#dddddd\"";
  std::string s;
  double written = -plot.width;  // where the last words end
  for (const double t : x.ticks()) {
    const std::string words = tick_words(t);
    const double half = kLetter * static_cast<double>(words.size()) / 2;
    s += line_between(x.at(t), box.top, x.at(t), box.bottom, grid);
    if (x.at(t) - half < written + 4) continue;
    s += text_at(x.at(t), box.bottom + 18, "middle", words);
    written = x.at(t) + half;
  }
  for (const double t : y.ticks())
    s += line_between(box.left, y.at(t), box.right, y.at(t), grid) + text_at(box.left - 8, y.at(t) + 4, "end", tick_words(t));
  s += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"#444444\"/>\n", box.left,
                   box.top, box.right - box.left, box.bottom - box.top);
  const double middle_x = (box.left + box.right) / 2, middle_y = (box.top + box.bottom) / 2;
  s += text_at(middle_x, 26, "middle", plot.title, " font-size=\"16\" font-weight=\"bold\"");
  s += text_at(middle_x, box.bottom + 44, "middle", plot.x.label);
  return s + text_at(20, middle_y, "middle", plot.y.label, fmt::format(" transform=\"rotate(-90 20 {:.1f})\"", middle_y));
}

// A dashed series has the colour of the one before it, which it is a reference to.
std::vector<size_t> colours_of(const std::vector<PlotSeries>& series) {
  std::vector<size_t> numbers;
  size_t next = 0;
  for (const PlotSeries& s : series) numbers.push_back(s.dashed && next > 0 ? next - 1 : next++);
  return numbers;
}

// Marks differ too, for print without colours: a disc, a square, a diamond, a triangle.
std::string mark_svg(size_t series, double x, double y, std::string_view colour) {
  constexpr double r = 4;
  const auto polygon = [&](std::initializer_list<PlotPoint> corners) {
    std::string points;
    for (const PlotPoint& c : corners) points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x + c.x, y + c.y);
    return fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", points, colour);
  };
  switch (series % 4) {
    case 0: return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"/>\n", x, y, r, colour);
    case 1: return polygon({{-r, -r}, {r, -r}, {r, r}, {-r, r}});
    case 2: return polygon({{0, -r - 1}, {r + 1, 0}, {0, r + 1}, {-r - 1, 0}});
    default: return polygon({{0, -r - 1}, {r + 1, r}, {-r - 1, r}});
  }
}

std::string stroke_of(const PlotSeries& series, std::string_view colour) {
  return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}", colour, series.dashed ? " stroke-dasharray=\"6 4\"" : "");
}

// Each stretch of points that have one is a polygon: there along the upper edge, and back along the lower one.
std::string band_svg(const PlotSeries& series, std::string_view colour, const Scale& x, const Scale& y) {
  std::string out;
  for (size_t begin = 0; begin < series.points.size(); ++begin) {
    size_t end = begin;
    std::string there, back;
    for (; end < series.points.size() && has_band(series, end); ++end) {
      const double at = x.at(series.points[end].x);
      there += fmt::format("{:.1f},{:.1f} ", at, y.at(series.band[end].high));
      back = fmt::format("{:.1f},{:.1f} ", at, y.at(series.band[end].low)) + back;
    }
    if (end - begin > 1)
      out += fmt::format("<polygon points=\"{}{}\" fill=\"{}\" fill-opacity=\"0.2\"/>\n", there, back.substr(0, back.size() - 1), colour);
    begin = end;
  }
  return out;
}

std::string series_svg(const PlotSeries& series, size_t number, const Scale& x, const Scale& y) {
  const std::string_view colour = kColours[number % kColours.size()];
  std::string lines, marks, points;
  const auto end_line = [&] {
    if (points.find(' ') != std::string::npos) lines += fmt::format("<polyline points=\"{}\" {}/>\n", points, stroke_of(series, colour));
    points.clear();
  };
  for (const PlotPoint& p : series.points) {
    if (!is_drawn(p)) {
      end_line();
      continue;
    }
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x.at(p.x), y.at(p.y));
    if (!series.dashed && series.marks) marks += mark_svg(number, x.at(p.x), y.at(p.y), colour);
  }
  end_line();
  return band_svg(series, colour, x, y) + lines + marks;
}

std::string legend_svg(const Plot& plot, const std::vector<size_t>& numbers, const Box& box) {
  std::string s;
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const PlotSeries& series = plot.series[i];
    const double x = box.right + kGap, y = box.top + 12 + 22 * static_cast<double>(i);
    const std::string_view colour = kColours[numbers[i] % kColours.size()];
    s += line_between(x, y, x + 28, y, stroke_of(series, colour));
    if (!series.dashed && series.marks) s += mark_svg(numbers[i], x + 14, y, colour);
    s += text_at(x + 36, y + 4, "start", series.name);
  }
  return s;
}

// Of the longest name, at most a third of the page.
double legend_width(const Plot& plot) {
  size_t longest = 0;
  for (const PlotSeries& s : plot.series) longest = std::max(longest, s.name.size());
  return std::min(plot.width / 3.0, 36.0 + kLetter * static_cast<double>(longest));
}

}  // namespace

std::vector<double> linear_ticks(double low, double high, int count) {
  HLAT_CHECK(low < high && std::isfinite(high - low) && count > 0, "ticks from {} to {}", low, high);
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high, int count) {
  HLAT_CHECK(low > 0 && low < high && count > 0, "logarithmic ticks from {} to {}", low, high);
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9)), last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  const bool powers_alone = 3 * (last - first) > 2 * count;
  const int stride = std::max(1, (last - first + count - 1) / count);
  std::vector<double> all;
  for (int power = first; power <= last; power += powers_alone ? stride : 1)
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && (powers_alone || power == last)) continue;
      all.push_back(factor * std::pow(10, power));
    }
  if (powers_alone) return all;
  // Not a whole power beyond the values where 2 or 5 of it will do.
  auto begin = std::find_if(all.begin(), all.end(), [&](double t) { return t > low * (1 + 1e-9); });
  auto end = std::find_if(all.begin(), all.end(), [&](double t) { return t >= high * (1 - 1e-9); });
  return {begin == all.begin() ? begin : begin - 1, end == all.end() ? end : end + 1};
}

std::string tick_words(double value) {
  static constexpr std::array<const char*, 5> kUnits{"", "k", "M", "B", "T"};
  size_t unit = 0;
  double v = value;
  // From ten thousand on, thousands are the unit: 10k, but 1024 nodes.
  if (std::abs(v) >= 9999.5)
    for (; std::abs(v) >= 999.95 && unit + 1 < kUnits.size(); ++unit) v /= 1000;
  return fmt::format("{:.4g}{}", v + 0.0, kUnits[unit]);
}

std::string xml_text(std::string_view text) {
  std::string s;
  for (const char c : valid_text(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&')
      s += "&amp;";
    else if (c == '<')
      s += "&lt;";
    else if (c == '>')
      s += "&gt;";
    else if (c == '"')
      s += "&quot;";
    else if (c == '\'')
      s += "&#39;";
    else if (byte < 0x20 && c != '\t' && c != '\n')
      s += "\xEF\xBF\xBD";
    else
      s += c;
  }
  return s;
}

std::string svg_plot(const Plot& plot) {
  HLAT_CHECK(plot.width >= 300 && plot.height >= 200, "a plot of {} x {}", plot.width, plot.height);
  const double legend = plot.series.empty() ? 0 : legend_width(plot);
  const Box box{kLeft, plot.width - legend - 2 * kGap, kTop, static_cast<double>(plot.height - kBottom)};
  const Scale x(plot.x, range_of(plot, &PlotPoint::x, plot.x), box.left, box.right, 8);
  const Scale y(plot.y, range_of(plot, &PlotPoint::y, plot.y), box.bottom, box.top, 6);
  std::string s = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
      "{0} {1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"white\"/>\n",
      plot.width, plot.height, xml_text(plot.title));
  s += axes_svg(plot, box, x, y);
  const std::vector<size_t> numbers = colours_of(plot.series);
  for (size_t i = 0; i < plot.series.size(); ++i) s += series_svg(plot.series[i], numbers[i], x, y);
  return s + legend_svg(plot, numbers, box) + "</svg>\n";
}

}  // namespace hlat
