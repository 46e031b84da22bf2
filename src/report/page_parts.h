// The files of a report's page, in the binary: our own from src/report/page, and those of uPlot, which draws the curves
// (cmake/report.cmake).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hlat {

struct PagePart {
  std::string_view name, text;
};

// A long file is several parts of one name, in their order.
std::span<const PagePart> page_parts();

std::string page_file(std::string_view name);  // the whole file; empty: it is not in this binary

}  // namespace hlat
