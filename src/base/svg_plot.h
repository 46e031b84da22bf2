// A plot of lines as SVG text: named series over linear or logarithmic axes, with ticks, a grid and a legend. It needs nothing else to be
// shown: any browser opens it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hlat {

struct PlotPoint {
  double x = 0, y = 0;
};

struct PlotBand {
  double low = 0, high = 0;
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;    // drawn in this order; one that is not finite is left out and breaks the line
  bool dashed = false;              // a reference to the series before it: of its colour, without marks
  bool marks = true;                // at each point; curves of many points go without
  std::vector<PlotBand> band = {};  // around each point, shaded; empty: none
};

struct PlotAxis {
  std::string label;
  bool log = false;                // all values must then be above 0
  bool from_zero = false;          // of a linear axis
  std::vector<double> ticks = {};  // empty: chosen
};

struct Plot {
  std::string title;
  PlotAxis x, y;
  std::vector<PlotSeries> series;
  int width = 800, height = 500;
};

std::string svg_plot(const Plot& plot);

// Ticks from the first at or below low to the first at or above high: steps of 1, 2 or 5 times a power of ten, about `count` of them; on
// a logarithmic axis 1, 2, 5 of each power, or powers alone where those would be many.
std::vector<double> linear_ticks(double low, double high, int count);
std::vector<double> log_ticks(double low, double high, int count);
std::string tick_words(double value);  // "0.25", "40", "1.2M"

// Text as XML holds it: markup and quotes are escaped; what XML cannot hold becomes U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace hlat
