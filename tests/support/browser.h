// A page in Chromium without a window, for tests of what its scripts do.
#pragma once

#include <string>

namespace hlat::test {

struct OpenedPage {
  bool opened = false;  // Chromium ended well
  std::string dom;      // as it is when the scripts have run
  std::string said;     // lines of the console: errors of scripts, and what the content policy refused

  // The value of data-NAME of the page's element html; empty: it has none.
  std::string told(const std::string& name) const;
};

bool has_browser();
// profile: a folder that Chromium may make. The page's clock goes on at once while nothing happens, up to so many milliseconds.
OpenedPage open_in_browser(const std::string& page, const std::string& profile, int page_ms = 4000);

}  // namespace hlat::test
