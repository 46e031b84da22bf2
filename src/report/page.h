// A report as one HTML file that loads nothing: styles, scripts, uPlot and the data are in it, and its content policy forbids the rest.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace hlat {

inline constexpr std::string_view kPageMark = "<!doctype html><!-- hlat report -->";  // every page begins with it

// UsageError: this binary was built without uPlot.
std::string page_html(const nlohmann::ordered_json& data);

// JSON that can stand in a script element: no "<" in it.
std::string script_json(const nlohmann::ordered_json& data);

// Writes the page in one piece, beside and then in place of an older report. UsageError: the path is a folder, is a file that is no
// report, or cannot be written.
void write_page(const std::filesystem::path& file, std::string_view html);
void check_page_path(const std::filesystem::path& file);  // the same complaints, before anything is read

}  // namespace hlat
