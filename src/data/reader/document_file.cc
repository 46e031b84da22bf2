// Opens a data file by its name: finds its format, finds or makes its index, checks the share of bad documents.
// An index lies in a folder .hlat next to the data, else, where that cannot be written, in the user's cache ($XDG_CACHE_HOME/hlat or
// ~/.cache/hlat), or in the folder that is asked for.
#include "data/reader/document_file.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/error.h"
#include "base/machine.h"
#include "data/reader/content_hash.h"
#include "data/reader/index_writer.h"
#include "data/reader/indexed_file.h"
#include "data/reader/scan.h"

namespace hlat {
namespace reader {
namespace {

namespace fs = std::filesystem;

struct Format {
  std::string_view suffix;
  std::string_view name;  // part of the index's settings
  bool has_field;         // documents come from the field that the options name
  void (*scan)(const ScanJob&);
};

constexpr std::array kFormats = {
    Format{".jsonl", "jsonl", true, scan_jsonl},
    Format{".jsonl.gz", "jsonl.gz", true, scan_jsonl_gzip},
    Format{".jsonl.zst", "jsonl.zst", true, scan_jsonl_zstd},
    Format{".txt", "text", false, scan_text},
    Format{".arrow", "arrow", true, scan_arrow},
    Format{".parquet", "parquet", true, scan_parquet},
    Format{".bin", "megatron", false, scan_megatron},
    Format{".idx", "megatron", false, scan_megatron},
};

constexpr uint64_t kWorthAThread = 1 << 20;  // bytes of a file

const Format& format_of(const std::string& path) {
  std::string known;
  for (const Format& format : kFormats) {
    if (path.ends_with(format.suffix)) return format;
    known += fmt::format("{}{}", known.empty() ? "" : " ", format.suffix);
  }
  throw UsageError(fmt::format("{}: not a data file by its name; known are {}", path, known));
}

// A Megatron pair is known by either of its names.
std::string data_path(const std::string& path) { return path.ends_with(".idx") ? path.substr(0, path.size() - 4) + ".bin" : path; }
std::string second_path(const std::string& path) { return path.ends_with(".bin") ? path.substr(0, path.size() - 4) + ".idx" : ""; }

IndexKey key_of(const InputFile& file, const InputFile* second, const Format& format, const ReaderOptions& options) {
  const std::string settings = fmt::format("{}\n{}", format.name, format.has_field ? options.field : "");
  IndexKey key{.settings = hash_content(settings),
               .size = file.size(),
               .changed = static_cast<uint64_t>(file.stamp().changed),
               .sample = file.sample()};
  if (second) {
    key.size = hash_pair(key.size, second->size());
    key.changed = hash_pair(key.changed, static_cast<uint64_t>(second->stamp().changed));
    key.sample = hash_pair(key.sample, second->sample());
  }
  return key;
}

// The settings are in the name, so that two ways to read one file do not take turns in overwriting an index.
std::string file_name(const fs::path& data, uint64_t tag) { return fmt::format("{}.{:016x}.idx", data.filename().string(), tag); }

// Best first. In a folder for many, the name also tells files of equal name in different folders apart.
std::vector<fs::path> places(const std::string& data_file, uint64_t settings, const std::string& cache_dir) {
  const fs::path data = fs::absolute(data_file).lexically_normal();
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

// Loads the index, or makes it with `make`. Error when it can be written nowhere, and instead of a scan where options.verified says that
// there is an index already.
std::unique_ptr<Index> find_or_make_index(const std::string& data_file, const IndexKey& key, const ReaderOptions& options,
                                          const std::function<void(IndexWriter&)>& make) {
  const std::vector<fs::path> choices = places(data_file, key.settings, options.cache_dir);
  for (const fs::path& place : choices)
    if (auto index = Index::load(place.string(), key, options)) return index;
  if (options.verified) fail("{} or its index is not what the process that opened it first found: it changed during start-up", data_file);
  std::string problem;
  for (const fs::path& place : choices) {
    const std::unique_ptr<IndexWriter> writer = open_writer(place, key, problem);
    if (!writer) continue;
    if (options.work != nullptr) ++options.work->files_scanned;
    make(*writer);
    writer->publish();
    if (auto index = Index::load(place.string(), key, options)) return index;
    fail("cannot read the index {} that was just made", place.string());
  }
  fail("no place for the index of {}:{}", data_file, problem);
}

void scan(const Format& format, const ScanJob& job) {
  format.scan(job);
  if (job.second) job.second->check_unchanged();
  job.file.check_unchanged();  // an index of two states of a file is of none
  if (job.index.header().documents == 0 && job.index.header().bad == 0) {
    ScanPart nothing;
    nothing.add_bad(0, "no documents: the file is empty");
    job.index.add(nothing);
  }
}

std::unique_ptr<DocumentFile> make_file(InputFile file, std::unique_ptr<Index> index, const ReaderOptions& options) {
  switch (index->header().layout) {
    case Layout::json_lines: return make_json_lines(std::move(file), std::move(index), options.field);
    case Layout::blocks: return make_blocks(std::move(file), std::move(index));
    case Layout::in_place: return make_in_place(std::move(file), std::move(index));
    case Layout::tokens: return make_token_file(std::move(file), std::move(index));
    case Layout::whole_file: return make_whole_file(std::move(file), std::move(index));
    default: break;
  }
  fail("{}: unknown layout {} in index {}", file.path(), static_cast<uint32_t>(index->header().layout), index->file().path());
}

}  // namespace
}  // namespace reader

std::unique_ptr<DocumentFile> open_documents(const std::string& path, const ReaderOptions& options) {
  using namespace reader;  // NOLINT(google-build-using-namespace)
  const Format& format = format_of(path);
  InputFile file(data_path(path));
  std::optional<InputFile> second;
  if (const std::string name = second_path(file.path()); !name.empty()) second.emplace(name);
  const InputFile* other = second ? &*second : nullptr;
  auto index = find_or_make_index(file.path(), key_of(file, other, format, options), options, [&](IndexWriter& writer) {
    ReaderOptions own = options;
    own.threads =
        static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(std::max(options.threads, 1)), 1 + file.size() / kWorthAThread));
    scan(format, {.file = file, .second = other, .options = own, .index = writer});
  });
  if (options.work != nullptr) ++options.work->files_opened;
  check_bad_share(index->report(file.path()), options.bad_share);
  return make_file(std::move(file), std::move(index), options);
}

std::string describe_bad(const FileReport& report) {
  std::string text = fmt::format("{}: {} of {} documents are bad", report.path, report.bad, report.bad + report.documents);
  for (const BadDocument& bad : report.examples) {
    text +=
        bad.line > 0 ? fmt::format("\n  {}:{}: {}", report.path, bad.line, bad.reason) : fmt::format("\n  {}: {}", report.path, bad.reason);
  }
  if (report.bad > report.examples.size()) text += fmt::format("\n  and {} more", report.bad - report.examples.size());
  return text;
}

void check_bad_share(const FileReport& report, double share) {
  constexpr uint64_t kFew = 3;  // bad documents that no share forbids: a short file has no shares worth the name
  const double allowed = share * static_cast<double>(report.bad + report.documents);
  if (report.bad == 0 || (share > 0 && report.bad <= kFew) || static_cast<double>(report.bad) <= allowed) return;
  throw Error(fmt::format("{}\n  allowed is a share of {:g}", describe_bad(report), share));
}

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
