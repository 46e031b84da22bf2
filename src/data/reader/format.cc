#include "data/reader/format.h"

#include <array>

#include "base/error.h"
#include "data/reader/content_hash.h"
#include "data/reader/indexed_file.h"

namespace hlat::reader {
namespace {

using Uses = Format::Uses;
constexpr std::array kFormats = {
    Format{".jsonl", "jsonl", Uses::field, Compression::none, scan_json_lines},
    Format{".jsonl.gz", "jsonl.gz", Uses::field, Compression::gzip, scan_json_lines},
    Format{".jsonl.zst", "jsonl.zst", Uses::field, Compression::zstd, scan_json_lines},
    Format{".ndjson", "jsonl", Uses::field, Compression::none, scan_json_lines},
    Format{".ndjson.gz", "jsonl.gz", Uses::field, Compression::gzip, scan_json_lines},
    Format{".ndjson.zst", "jsonl.zst", Uses::field, Compression::zstd, scan_json_lines},
    Format{".json", "json", Uses::field, Compression::none, scan_json},
    Format{".json.gz", "json.gz", Uses::field, Compression::gzip, scan_json},
    Format{".json.zst", "json.zst", Uses::field, Compression::zstd, scan_json},
    Format{".txt", "text", Uses::separator, Compression::none, scan_texts},
    Format{".txt.gz", "text.gz", Uses::separator, Compression::gzip, scan_texts},
    Format{".txt.zst", "text.zst", Uses::separator, Compression::zstd, scan_texts},
    Format{".arrow", "arrow", Uses::field, Compression::none, scan_arrow},
    Format{".parquet", "parquet", Uses::field, Compression::none, scan_parquet},
    Format{".bin", "megatron", Uses::nothing, Compression::none, scan_megatron},
    Format{".idx", "megatron", Uses::nothing, Compression::none, scan_megatron},
};

}  // namespace

const Format* find_format(std::string_view path) {
  for (const Format& format : kFormats)
    if (path.ends_with(format.suffix)) return &format;
  return nullptr;
}

const Format& format_of(const std::string& path) {
  if (const Format* format = find_format(path)) return *format;
  fail<UsageError>("{}: not a data file by its name; known are {}", path, known_formats());
}

std::string known_formats() {
  std::string known;
  for (const Format& format : kFormats) known += fmt::format("{}{}", known.empty() ? "" : " ", format.suffix);
  return known;
}

uint64_t settings_of(const Format& format, const ReaderOptions& options) {
  const std::string& used = format.uses == Uses::field ? options.field : options.separator;
  return hash_content(fmt::format("{}\n{}", format.name, format.uses == Uses::nothing ? "" : used));
}

std::string data_path(const std::string& path) { return path.ends_with(".idx") ? path.substr(0, path.size() - 4) + ".bin" : path; }
std::string second_path(const std::string& path) { return path.ends_with(".bin") ? path.substr(0, path.size() - 4) + ".idx" : ""; }

IndexKey key_of(const InputFile& file, const InputFile* second, uint64_t settings) {
  IndexKey key{.settings = settings, .size = file.size(), .changed = static_cast<uint64_t>(file.stamp().changed), .sample = file.sample()};
  if (second) {
    key.size = hash_pair(key.size, second->size());
    key.changed = hash_pair(key.changed, static_cast<uint64_t>(second->stamp().changed));
    key.sample = hash_pair(key.sample, second->sample());
  }
  return key;
}

void scan(const Format& format, const ScanJob& job) {
  format.scan(job, format.compression);
  if (job.second) job.second->check_unchanged();
  job.file.check_unchanged();  // an index of two states of a file is of none
  job.advance(job.file.size());
  if (job.index.header().documents == 0 && job.index.header().bad == 0 && !job.index.broken()) {
    ScanPart nothing;
    nothing.add_bad(0, kNoDocuments);
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
  fail("{}: unknown layout {} in index {}", file.path(), static_cast<uint32_t>(index->header().layout), index->path());
}

}  // namespace hlat::reader
