// Shell patterns for data files.
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "data/reader/document_file.h"

namespace hlat {

std::vector<std::string> match_files(const std::string& pattern) {
  if (std::error_code error; std::filesystem::is_regular_file(pattern, error)) return {pattern};  // its name may have brackets
  glob_t found{};
  // A folder that is not there has no files; one that may not be read is an error.
  const auto stop = [](const char* /*path*/, int error) { return error == ENOENT || error == ENOTDIR ? 0 : 1; };
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_BRACE | GLOB_TILDE, stop, &found);
  const std::unique_ptr<glob_t, decltype(&::globfree)> release(&found, &::globfree);
  if (status == GLOB_NOMATCH) throw UsageError(fmt::format("no file matches {}", pattern));
  if (status != 0) fail("cannot look for {}: {}", pattern, status == GLOB_NOSPACE ? "not enough memory" : "a folder cannot be read");
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  // "data*" names both files of a Megatron pair, which are one.
  std::erase_if(files, [&](const std::string& path) {
    return path.ends_with(".idx") && std::binary_search(files.begin(), files.end(), path.substr(0, path.size() - 4) + ".bin");
  });
  return files;
}

}  // namespace hlat
