#include "report/page.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "report/page_parts.h"

namespace hlat {
namespace fs = std::filesystem;

namespace {

// `text` in the place of {{name}}, which stands once.
void fill(std::string& page, const std::string& name, const std::string& text) {
  const std::string mark = "{{" + name + "}}";
  const size_t at = page.find(mark);
  HLAT_CHECK(at != std::string::npos, "the page has no {}", mark);
  page.replace(at, mark.size(), text);
}

// Our scripts, in the order in which they use each other.
std::string scripts() {
  std::string text;
  for (const char* name : {"format.js", "axis.js", "plot.js", "heat.js", "timeline.js", "tables.js", "sections.js", "main.js"})
    text += page_file(name) + "\n";
  return text;
}

}  // namespace

std::string script_json(const nlohmann::ordered_json& data) {
  std::string text = json_text(data), out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string page_html(const nlohmann::ordered_json& data) {
  const std::string library = page_file("uPlot.iife.js");
  if (library.empty())
    fail<UsageError>(
        "this hlat was built without uPlot, which draws the curves: tools/setup_plot.sh installs it, then build again; "
        "hlat report --text needs nothing");
  std::string page = page_file("report.html");
  // What stands last in the page is filled in first: no mark is looked for in what was filled in.
  fill(page, "scripts", scripts());
  fill(page, "uplot", library);
  fill(page, "data", script_json(data));
  fill(page, "style", page_file("uPlot.min.css") + "\n" + page_file("report.css"));
  return std::string(kPageMark) + page;
}

void check_page_path(const fs::path& file) {
  std::error_code none;
  if (fs::is_directory(file, none))
    fail<UsageError>("--out {} is a folder: give a file, as {}", file.string(), (file / "report.html").string());
  const fs::path parent = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, none)) fail<UsageError>("--out {}: there is no folder {}", file.string(), parent.string());
  if (access(parent.c_str(), W_OK) != 0) fail<UsageError>("--out {}: the folder {} cannot be written to", file.string(), parent.string());
  if (!fs::exists(file, none)) return;
  if (!fs::is_regular_file(file, none))
    fail<UsageError>("--out {} is a device or pipe: give a file; --text draws in the terminal", file.string());
  std::ifstream in(file, std::ios::binary);
  std::string begin(kPageMark.size(), '\0');
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (begin != kPageMark) fail<UsageError>("--out {} is there and is no report of hlat: give another name, or remove it", file.string());
}

void write_page(const fs::path& file, std::string_view html) {
  check_page_path(file);
  const fs::path part = fmt::format("{}.{}.part", file.string(), getpid());
  try {
    OutputFile(part, OutputFile::Mode::create_new).write(html);
    fs::rename(part, file);
  } catch (const std::exception&) {
    std::error_code none;
    fs::remove(part, none);
    throw;
  }
}

}  // namespace hlat
