#include "data/reader/match_files.h"

#include <dirent.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "config/nearest_file.h"
#include "data/reader/format.h"
#include "data/reader/index_place.h"

namespace hlat {
namespace {

using Names = std::vector<std::string>;

// The patterns that the first {a,b} of a pattern from `from` on stands for, and those of these. Braces without a comma are a name's own.
void expand_braces(const std::string& pattern, Names& out, size_t from = 0) {
  const size_t open = pattern.find('{', from);
  if (open == std::string::npos) return out.push_back(pattern);
  size_t close = std::string::npos;
  std::vector<size_t> cuts = {open};  // the brackets and commas of this level
  for (size_t i = open, depth = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '{') ++depth;
    if (pattern[i] == ',' && depth == 1) cuts.push_back(i);
    if (pattern[i] == '}' && --depth == 0) {
      close = i;
      break;
    }
  }
  if (close == std::string::npos || cuts.size() == 1) return expand_braces(pattern, out, open + 1);
  cuts.push_back(close);
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    expand_braces(pattern.substr(0, open) + pattern.substr(cuts[i] + 1, cuts[i + 1] - cuts[i] - 1) + pattern.substr(close + 1), out, open);
}

bool is_pattern(const std::string& part) { return part.find_first_of("*?[\\") != std::string::npos; }

struct Entry {
  std::string name;
  bool folder = false;  // a link to one is none
  bool link = false;
};

bool is_folder(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}

std::vector<Entry> entries_of(const std::string& folder) {
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> dir(::opendir(folder.empty() ? "." : folder.c_str()), close);
  if (!dir) {
    if (errno == ENOENT || errno == ENOTDIR) return {};  // it has no files
    fail_storage(errno, "cannot look into the folder " + folder);
  }
  std::vector<Entry> list;
  while (const dirent* e = ::readdir(dir.get())) {
    const std::string name = e->d_name;
    if (name == "." || name == "..") continue;
    Entry entry{name, e->d_type == DT_DIR, e->d_type == DT_LNK};
    struct stat s {};
    if (e->d_type == DT_UNKNOWN && ::lstat((folder + name).c_str(), &s) == 0)
      entry.folder = S_ISDIR(s.st_mode), entry.link = S_ISLNK(s.st_mode);
    list.push_back(std::move(entry));
  }
  return list;
}

// Walks the parts of a pattern; `found` gets all names that exist.
class Walk {
 public:
  Walk(const std::string& pattern, Names& found) : found_(found) {
    size_t begin = 0;
    for (size_t slash = 0; (slash = pattern.find('/', begin)) != std::string::npos; begin = slash + 1)
      parts_.push_back(pattern.substr(begin, slash - begin));
    parts_.push_back(pattern.substr(begin));
  }
  void run() { go("", 0); }

 private:
  // `base` is empty or ends with a slash.
  void go(const std::string& base, size_t part) {
    const bool last = part + 1 == parts_.size();
    const std::string& name = parts_[part];
    if (name == "**") return go_deep(base, part);
    if (!is_pattern(name)) {
      struct stat s {};
      if (!last) return go(base + name + "/", part + 1);
      if (::lstat((base + name).c_str(), &s) == 0) found_.push_back(base + name);
      return;
    }
    for (const Entry& e : entries_of(base)) {
      if (::fnmatch(name.c_str(), e.name.c_str(), FNM_PERIOD) != 0) continue;
      if (last)
        found_.push_back(base + e.name);
      else
        go(base + e.name + "/", part + 1);
    }
  }
  void go_deep(const std::string& base, size_t part) {
    const bool last = part + 1 == parts_.size();
    if (!last) go(base, part + 1);
    for (const Entry& e : entries_of(base)) {
      if (e.name.starts_with('.')) continue;
      if (e.folder) go_deep(base + e.name + "/", part);
      if (last && !e.folder && !(e.link && is_folder(base + e.name))) found_.push_back(base + e.name);
    }
  }

  Names parts_;
  Names& found_;
};

void files_below(const std::string& folder, Names& found, Names& others) {
  for (const Entry& e : entries_of(folder + "/")) {
    if (e.name.starts_with('.')) continue;
    const std::string path = folder + (folder.ends_with('/') ? "" : "/") + e.name;
    if (e.folder)
      files_below(path, found, others);
    else
      (reader::find_format(e.name) != nullptr ? found : others).push_back(path);
  }
}

// "a, b, c and 4 more".
std::string some_of(const Names& names) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > kShown ? fmt::format("{} and {} more", text, names.size() - kShown) : text;
}

// "~/data" with the home folder in place of ~.
std::string from_home(std::string path) {
  if (const char* home = std::getenv("HOME"); home != nullptr && (path == "~" || path.starts_with("~/"))) path.replace(0, 1, home);
  return path;
}

// `literal`: the path is one name, not a pattern.
Names matching(const std::string& path, bool& literal) {
  const std::string pattern = from_home(path);
  struct stat s {};
  literal = ::stat(pattern.c_str(), &s) == 0;
  if (literal) return {pattern};  // its name may have brackets
  if (errno == EACCES || errno == ELOOP || errno == ENAMETOOLONG) fail_storage(errno, "cannot look for " + path);
  Names patterns, found;
  expand_braces(pattern, patterns);
  for (const std::string& p : patterns) Walk(p, found).run();
  return found;
}

// "data*" names both files of a Megatron pair, which are one. The list is sorted.
void drop_second_halves(Names& files) {
  Names rest;
  for (std::string& path : files) {
    const bool half = path.ends_with(".idx") && std::binary_search(files.begin(), files.end(), path.substr(0, path.size() - 4) + ".bin");
    if (!half) rest.push_back(path);
  }
  files = std::move(rest);
}

// Of what a folder or a pattern has: the indices of data files, which may lie among them, and each .idx that `lone` gets, without its .bin.
void drop_lone_halves(Names& files, Names& lone) {
  std::erase_if(files, [&](const std::string& path) {
    struct stat s {};
    if (!path.ends_with(".idx") || ::stat(reader::data_path(path).c_str(), &s) == 0) return false;
    if (!reader::is_index_name(path)) lone.push_back(path);
    return true;
  });
}

// The nearest name, or the folder that there is not; of a pattern the folder before it.
std::string hint_of(const std::string& path) {
  const size_t special = path.find_first_of("*?[\\{");
  if (special == std::string::npos) return file_hint(path);
  const size_t slash = path.rfind('/', special);
  if (slash == std::string::npos || is_folder(path.substr(0, slash + 1))) return "";
  return file_hint(path.substr(0, slash + 1) + "*");
}

[[noreturn]] void fail_none(const std::string& path, const Names& others, const Names& lone) {
  if (!lone.empty()) fail<UsageError>("{}: {} without the .bin that belongs to it", path, some_of(lone));
  if (others.empty()) fail<UsageError>("no file matches {}{}", path, hint_of(from_home(path)));
  fail<UsageError>("no file in {} is a data file by its name ({}); known are {}", path, some_of(others), reader::known_formats());
}

}  // namespace

FoundFiles find_files(const std::string& path) {
  Names files, others, twice, lone;
  bool literal = false;
  for (std::string& name : matching(path, literal)) {
    if (is_folder(name))
      files_below(name, files, others), literal = false;
    else
      files.push_back(std::move(name));
  }
  std::sort(files.begin(), files.end());
  drop_second_halves(files);
  if (!literal) drop_lone_halves(files, lone);
  FoundFiles found;
  std::unordered_map<uint64_t, const std::string*> seen;
  for (const std::string& name : files) {
    struct stat s {};
    if (::stat(name.c_str(), &s) != 0) fail_storage(errno, "cannot open " + name);
    const FoundFile file{name, reader::FileStamp::of(s)};
    const auto [first, fresh] = seen.emplace(file.stamp.inode, &name);
    if (fresh)
      found.files.push_back(file);
    else
      twice.push_back(*first->second == name ? name : fmt::format("{} is {}", name, *first->second));
  }
  if (found.files.empty()) fail_none(path, others, lone);
  if (!lone.empty())
    found.remarks.push_back(fmt::format("{} of the files that {} names {} left out, an .idx without its .bin: {}", lone.size(), path,
                                        lone.size() == 1 ? "was" : "were", some_of(lone)));
  if (!twice.empty())
    found.remarks.push_back(fmt::format("{} of the files that {} names {} found twice and read once: {}", twice.size(), path,
                                        twice.size() == 1 ? "was" : "were", some_of(twice)));
  if (!others.empty())
    found.remarks.push_back(fmt::format("{} of the files in {} {} no data file{} by name: {}", others.size(), path,
                                        others.size() == 1 ? "is" : "are", others.size() == 1 ? "" : "s", some_of(others)));
  return found;
}

std::vector<std::string> match_files(const std::string& path) {
  Names names;
  for (FoundFile& f : find_files(path).files) names.push_back(std::move(f.path));
  return names;
}

}  // namespace hlat
