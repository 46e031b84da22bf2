// Opens a data file by its name: finds its format, finds or makes its index, checks the share of bad documents.
#include <array>
#include <string_view>

#include "base/error.h"
#include "data/reader/content_hash.h"
#include "data/reader/index_place.h"
#include "data/reader/indexed_file.h"
#include "data/reader/scan.h"

namespace hlat {
namespace reader {
namespace {

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
};

const Format& format_of(const std::string& path) {
  std::string known;
  for (const Format& format : kFormats) {
    if (path.ends_with(format.suffix)) return format;
    known += fmt::format("{}{}", known.empty() ? "" : " ", format.suffix);
  }
  throw UsageError(fmt::format("{}: not a data file by its name; known are {}", path, known));
}

IndexKey key_of(const InputFile& file, const Format& format, const ReaderOptions& options) {
  const std::string settings = fmt::format("{}\n{}", format.name, format.has_field ? options.field : "");
  return {.settings = hash_content(settings),
          .size = file.size(),
          .changed = static_cast<uint64_t>(file.stamp().changed),
          .sample = file.sample()};
}

void scan(const Format& format, const ScanJob& job) {
  format.scan(job);
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
  InputFile file(path);
  auto index = find_or_make_index(path, key_of(file, format, options), options.cache_dir, [&](IndexWriter& writer) {
    scan(format, {.file = file, .second = nullptr, .options = options, .index = writer});
  });
  check_bad_share(index->report(path), options.bad_share);
  return make_file(std::move(file), std::move(index), options);
}

}  // namespace hlat
