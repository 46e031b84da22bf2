// Curves in a terminal: dots of braille patterns, two by four in a character, or plain characters. Several runs share a plot: each has a
// colour where there are colours, else a letter of its own.
#pragma once

#include <string>
#include <vector>

#include "report/curve.h"
#include "report/report_run.h"

namespace hlat {

struct TextStyle {
  int width = 80, height = 12;  // columns in all, lines of the plot
  bool braille = false;         // else ASCII
  bool color = false;           // ANSI
};

struct TextCurve {
  std::string name;
  Curve curve;
};

// A title, the plot with values on the left and steps below, and the names where there are several. Empty: no curve has a value.
std::string text_plot(const std::string& title, const std::vector<TextCurve>& curves, const TextStyle& style);

// Loss, gradient norm, learning rate, tokens/s and validation loss of the runs, and their table.
std::string text_report(const std::vector<ReportRun>& runs, const TextStyle& style);

// Whether a locale, as LC_ALL, LC_CTYPE and LANG tell it, is UTF-8.
bool is_utf8_locale(const char* lc_all, const char* lc_ctype, const char* lang);

}  // namespace hlat
