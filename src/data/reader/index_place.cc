#include "data/reader/index_place.h"

#include <filesystem>

#include "base/error.h"
#include "base/machine.h"
#include "data/reader/content_hash.h"
#include "data/reader/new_file.h"

namespace hlat::reader {

namespace fs = std::filesystem;

std::vector<std::string> index_places(const std::string& data, uint64_t tag, const std::string& cache_dir) {
  const fs::path path = fs::absolute(data).lexically_normal();
  const auto name = [&](uint64_t t) { return fmt::format("{}.{:016x}.idx", path.filename().string(), t); };
  const std::string shared_name = name(hash_pair(tag, hash_content(path.string())));
  if (!cache_dir.empty()) return {(fs::path(cache_dir) / shared_name).string()};
  std::vector<std::string> found = {(path.parent_path() / ".hlat" / name(tag)).string()};
  if (const fs::path user = user_cache_dir(); !user.empty()) found.push_back((user / shared_name).string());
  return found;
}

bool is_index_name(std::string_view name) {
  constexpr std::string_view kEnd = ".idx";
  constexpr size_t kTag = 16;
  if (!name.ends_with(kEnd) || name.size() < kTag + kEnd.size() + 1) return false;
  name.remove_suffix(kEnd.size());
  return name[name.size() - kTag - 1] == '.' && name.substr(name.size() - kTag).find_first_not_of("0123456789abcdef") == name.npos;
}

void write_at_first(const std::vector<std::string>& places, const std::string& data, const std::function<void(const std::string&)>& write) {
  std::string problem;
  for (const std::string& place : places) {
    std::error_code error;
    fs::create_directories(fs::path(place).parent_path(), error);
    try {
      const NewFile probe(place);
    } catch (const Error& e) {
      problem += fmt::format("\n  {}", e.what());
      continue;
    }
    return write(place);
  }
  fail<UsageError>("no place for the index of {}:{}", data, problem);
}

}  // namespace hlat::reader
