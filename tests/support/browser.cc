#include "support/browser.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "support/temp_dir.h"

namespace hlat::test {

namespace {

std::string without_entities(std::string text) {
  for (const auto& [entity, character] : {std::pair("&quot;", "\""), {"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
    for (size_t at = 0; (at = text.find(entity, at)) != std::string::npos; ++at) text.replace(at, std::string(entity).size(), character);
  return text;
}

}  // namespace

std::string OpenedPage::told(const std::string& name) const {
  const std::string head = dom.substr(0, dom.find("<head")), begin = " data-" + name + "=\"";
  const size_t at = head.find(begin);
  if (at == std::string::npos) return "";
  const size_t first = at + begin.size();
  return without_entities(head.substr(first, head.find('"', first) - first));
}

bool has_browser() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }

OpenedPage open_in_browser(const std::string& page, const std::string& profile, int page_ms) {
  const std::string errors = profile + ".stderr";
  const std::string command =
      "timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --enable-logging=stderr --window-size=1400,900"
      " --user-data-dir=" +
      profile + " --virtual-time-budget=" + std::to_string(page_ms) + " --dump-dom file://" + page + " 2>" + errors;
  OpenedPage out;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  char block[65536];
  for (size_t n = 0; (n = fread(block, 1, sizeof block, pipe)) > 0;) out.dom.append(block, n);
  out.opened = pclose(pipe) == 0;
  std::istringstream lines(slurp(errors));
  for (std::string line; std::getline(lines, line);)
    if (line.find("CONSOLE") != std::string::npos) out.said += line + "\n";
  return out;
}

}  // namespace hlat::test
