// Plots as text: well-formed XML whatever the labels are, ticks that people read, and points where the values are.
#include "base/svg_plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"

namespace hlat::test {
namespace {

// What is wrong with a document: tags that do not match, attributes without quotes, bare markup, entities that XML does not have. Empty:
// nothing.
std::string xml_problem(const std::string& text) {
  static const std::regex tag("<(/?)([a-z]+)((?: [a-zA-Z][a-zA-Z0-9:-]*=\"[^\"<]*\")*)(/?)>");
  static const std::regex entity("&(?!(amp|lt|gt|quot|#39);)");
  static const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  if (text.compare(0, head.size(), head) != 0) return "no head";
  if (std::regex_search(text, entity)) return "a bare &";
  std::vector<std::string> open;
  size_t at = head.size();
  while (at < text.size()) {
    if (text[at] != '<') {
      if (text[at] == '>') return "a bare >";
      if (open.empty() && text[at] != '\n') return "text outside of the root";
      ++at;
      continue;
    }
    std::smatch m;
    if (!std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), m, tag, std::regex_constants::match_continuous))
      return "no tag at " + text.substr(at, 40);
    if (m[1].length() > 0) {
      if (open.empty() || open.back() != m[2].str()) return "closes " + m[2].str();
      open.pop_back();
    } else if (m[4].length() == 0) {
      open.push_back(m[2].str());
    }
    at += static_cast<size_t>(m.length());
  }
  return open.empty() ? "" : "never closes " + open.back();
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

Plot two_lines() {
  return {.title = "tokens & <nodes>",
          .x = {.label = "nodes \"n\"", .log = true, .ticks = {4, 8, 16, 64}},
          .y = {.label = "tokens's"},
          .series = {{.name = "a<b", .points = {{4, 10}, {8, 19}, {16, 35}, {64, 100}}},
                     {.name = "linear", .points = {{4, 10}, {64, 160}}, .dashed = true}}};
}

TEST(SvgPlot, IsWellFormed) {
  const std::string svg = svg_plot(two_lines());
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_NE(svg.find("tokens &amp; &lt;nodes&gt;"), std::string::npos);
  EXPECT_NE(svg.find(">a&lt;b<"), std::string::npos);
  EXPECT_NE(svg.find("width=\"800\" height=\"500\""), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(SvgPlot, TheCheckOfTheseTestsFindsWhatIsWrong) {
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  EXPECT_EQ(xml_problem(head + "<a x=\"1\"><b/></a>\n"), "");
  for (const char* wrong : {"<a>", "<a></b>", "<a x=1/>", "<a>&nbsp;</a>", "<a>a & b</a>", "<a></a>x", "<a><</a>"})
    EXPECT_NE(xml_problem(head + wrong), "") << wrong;
}

TEST(SvgPlot, HasAMarkForEachPointAndOneForTheLegend) {
  const std::string svg = svg_plot(two_lines());
  EXPECT_EQ(count_of(svg, "<circle"), 4 + 1u);
  EXPECT_EQ(count_of(svg, "<polyline"), 2u);
  EXPECT_EQ(count_of(svg, "stroke-dasharray"), 2u);  // the line and its legend
}

TEST(SvgPlot, LeavesOutWordsOfTicksThatWouldTouch) {
  Plot plot = two_lines();
  plot.x.ticks = {1000, 1001, 1002, 4000};
  plot.series = {{.name = "s", .points = {{1000, 1}, {4000, 2}}}};
  const std::string svg = svg_plot(plot);
  EXPECT_EQ(count_of(svg, ">1000<"), 1u);
  EXPECT_EQ(count_of(svg, ">1001<") + count_of(svg, ">1002<"), 0u);
  EXPECT_EQ(count_of(svg, ">4000<"), 1u);
}

TEST(SvgPlot, AReferenceHasTheColourOfItsSeries) {
  Plot plot = two_lines();
  plot.series.push_back({.name = "other", .points = {{4, 1}, {8, 2}}});
  const std::string svg = svg_plot(plot);
  EXPECT_EQ(count_of(svg, "stroke=\"#0072b2\""), 4u);  // two lines, two in the legend
  EXPECT_EQ(count_of(svg, "stroke=\"#d55e00\""), 2u);
}

// Points of the first polyline.
std::vector<PlotPoint> drawn(const std::string& svg) {
  const size_t at = svg.find("<polyline points=\"") + 18;
  std::istringstream in(svg.substr(at, svg.find('"', at) - at));
  std::vector<PlotPoint> points;
  char comma = 0;
  for (PlotPoint p; in >> p.x >> comma >> p.y;) points.push_back(p);
  return points;
}

TEST(SvgPlot, LogarithmicAxesKeepRatiosAndLinearOnesDifferences) {
  const std::vector<PlotPoint> p = drawn(svg_plot(two_lines()));
  ASSERT_EQ(p.size(), 4u);
  EXPECT_NEAR(p[2].x - p[1].x, p[1].x - p[0].x, 0.2);  // 4, 8, 16
  EXPECT_NEAR(p[3].x - p[2].x, 2 * (p[1].x - p[0].x), 0.3);
  EXPECT_NEAR((p[0].y - p[1].y) / 9, (p[0].y - p[3].y) / 90, 0.02);  // 10, 19, 100; up is less
  EXPECT_GT(p[0].y, p[3].y);
  for (const PlotPoint& q : p) {
    EXPECT_GT(q.x, 84);
    EXPECT_LT(q.x, 800);
    EXPECT_GT(q.y, 46);
    EXPECT_LT(q.y, 440);
  }
}

TEST(SvgPlot, WhatIsNotFiniteBreaksTheLine) {
  Plot plot = two_lines();
  plot.series = {{.name = "gap", .points = {{4, 1}, {8, 2}, {16, NAN}, {32, 4}, {64, std::numeric_limits<double>::infinity()}}}};
  const std::string svg = svg_plot(plot);
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_EQ(count_of(svg, "<polyline"), 1u);  // one point alone makes no line
  EXPECT_EQ(count_of(svg, "<circle"), 3 + 1u);
  EXPECT_EQ(drawn(svg).size(), 2u);
}

TEST(SvgPlot, IsMadeOfNothingAndOfOnePoint) {
  Plot plot{.title = "empty", .x = {.label = "x"}, .y = {.label = "y", .log = true}, .series = {}};
  EXPECT_EQ(xml_problem(svg_plot(plot)), "");
  plot.series = {{.name = "one", .points = {{0, 5}}}};
  const std::string svg = svg_plot(plot);
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  Plot flat{.title = "flat",
            .x = {.label = "x"},
            .y = {.label = "y"},
            .series = {{.name = "one", .points = {{0, 0.1}, {1, std::nextafter(0.1, 1)}}}}};
  EXPECT_EQ(xml_problem(svg_plot(flat)), "") << "values that differ by rounding alone";
  plot.series[0].points = {{1, 0}};
  EXPECT_THROW(svg_plot(plot), CheckFailed);  // 0 has no place on the logarithmic axis
}

TEST(SvgPlot, ABandIsShadedWhereThereAreSeveralPointsOfIt) {
  Plot plot = two_lines();
  const size_t polygons = count_of(svg_plot(plot), "<polygon");
  plot.series[0].band = {{9, 11}, {18, 20}, {std::numeric_limits<double>::quiet_NaN(), 36}, {90, 400}};
  const std::string svg = svg_plot(plot);
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_EQ(count_of(svg, "fill-opacity"), 1u) << "the last point of a band stands alone";
  EXPECT_EQ(count_of(svg, "<polygon"), polygons + 1);
  EXPECT_NE(svg.find(">400</text>"), std::string::npos) << "the axis has room for it";
  plot.series[0].marks = false;
  EXPECT_LT(count_of(svg_plot(plot), "<circle"), count_of(svg, "<circle"));
}

TEST(SvgPlot, TextHoldsOnlyWhatXmlCan) {
  EXPECT_EQ(xml_text("a\x01z"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(xml_text("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(xml_text("\xC3\xA9"), "\xC3\xA9");
}

TEST(SvgTicks, AreRoundAndCoverTheValues) {
  EXPECT_EQ(linear_ticks(0, 100, 5), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(linear_ticks(3, 17, 6), (std::vector<double>{0, 5, 10, 15, 20}));
  for (const double low : {-7.3, 0.0, 1e-9, 12345.0})
    for (const double span : {1e-6, 0.37, 5.0, 9e7}) {
      const std::vector<double> t = linear_ticks(low, low + span, 6);
      EXPECT_LE(t.front(), low + 1e-6 * span);
      EXPECT_GE(t.back(), low + span * (1 - 1e-6));
      EXPECT_GE(t.size(), 3u);
      EXPECT_LE(t.size(), 9u);
    }
  EXPECT_EQ(log_ticks(3, 40, 6), (std::vector<double>{2, 5, 10, 20, 50}));
  EXPECT_EQ(log_ticks(1, 1e6, 6), (std::vector<double>{1, 10, 100, 1e3, 1e4, 1e5, 1e6}));
  for (const double high : {3.0, 999.0, 1e5, 1e12}) {
    const std::vector<double> t = log_ticks(2, high, 6);
    EXPECT_LE(t.front(), 2);
    EXPECT_LE(t.size(), 12u);
    EXPECT_TRUE(std::is_sorted(t.begin(), t.end()));
  }
}

TEST(SvgTicks, AreWordsOfFewLetters) {
  EXPECT_EQ(tick_words(0), "0");
  EXPECT_EQ(tick_words(-0.0), "0");
  EXPECT_EQ(tick_words(0.25), "0.25");
  EXPECT_EQ(tick_words(1024), "1024");
  EXPECT_EQ(tick_words(20000), "20k");
  EXPECT_EQ(tick_words(1e6), "1M");
  EXPECT_EQ(tick_words(1.2e7), "12M");
  EXPECT_EQ(tick_words(0.1 + 0.2), "0.3");
}

}  // namespace
}  // namespace hlat::test
