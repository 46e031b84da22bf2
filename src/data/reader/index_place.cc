#include "data/reader/index_place.h"

#include <filesystem>
#include <vector>

#include "base/cache_dir.h"
#include "base/error.h"
#include "data/reader/content_hash.h"

namespace hlat::reader {
namespace {

namespace fs = std::filesystem;

// The settings are in the name, so that two ways to read one file do not take turns in overwriting an index.
std::string file_name(const fs::path& data, uint64_t tag) { return fmt::format("{}.{:016x}.idx", data.filename().string(), tag); }

// Best first. In a folder for many, the name also tells files of equal name in different folders apart.
std::vector<fs::path> places(const std::string& data_path, uint64_t settings, const std::string& cache_dir) {
  const fs::path data = fs::absolute(data_path).lexically_normal();
  const std::string shared_name = file_name(data, hash_pair(settings, hash_content(data.string())));
  if (!cache_dir.empty()) return {fs::path(cache_dir) / shared_name};
  std::vector<fs::path> found = {data.parent_path() / ".hlat" / file_name(data, settings)};
  if (const fs::path user = user_cache_dir(); !user.empty()) found.push_back(user / shared_name);
  return found;
}

std::unique_ptr<IndexWriter> open_writer(const fs::path& place, const IndexKey& key, std::string& problem) {
  try {
    std::error_code error;
    fs::create_directories(place.parent_path(), error);
    return std::make_unique<IndexWriter>(place.string(), key);
  } catch (const Error& e) {
    problem += fmt::format("\n  {}", e.what());
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<Index> find_or_make_index(const std::string& data_path, const IndexKey& key, const ReaderOptions& options,
                                          const std::function<void(IndexWriter&)>& scan) {
  const std::vector<fs::path> choices = places(data_path, key.settings, options.cache_dir);
  for (const fs::path& place : choices)
    if (auto index = Index::load(place.string(), key, options)) return index;
  if (options.verified) fail("{} or its index is not what the process that opened it first found: it changed during start-up", data_path);
  std::string problem;
  for (const fs::path& place : choices) {
    const std::unique_ptr<IndexWriter> writer = open_writer(place, key, problem);
    if (!writer) continue;
    if (options.work != nullptr) ++options.work->files_scanned;
    scan(*writer);
    writer->publish();
    if (auto index = Index::load(place.string(), key, options)) return index;
    fail("cannot read the index {} that was just made", place.string());
  }
  fail("no place for the index of {}:{}", data_path, problem);
}

}  // namespace hlat::reader
