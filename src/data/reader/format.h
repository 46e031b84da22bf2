// The formats of data files, known by the end of their names.
#pragma once

#include <string>
#include <string_view>

#include "data/reader/index.h"
#include "data/reader/scan.h"

namespace hlat::reader {

struct Format {
  std::string_view suffix;
  std::string_view name;                                         // part of the index's settings
  enum class Uses : uint8_t { nothing, field, separator } uses;  // the option that the documents depend on
  Compression compression;
  void (*scan)(const ScanJob&, Compression);
};

const Format* find_format(std::string_view path);  // null: none by that name
const Format& format_of(const std::string& path);  // UsageError with the list of those known
std::string known_formats();                       // ".jsonl .jsonl.gz ..."
uint64_t settings_of(const Format& format, const ReaderOptions& options);

// A Megatron pair is known by either of its names.
std::string data_path(const std::string& path);    // the .bin of an .idx, else the path itself
std::string second_path(const std::string& path);  // the .idx of a .bin, else nothing

// Which index belongs to a file, or a pair of files, as it is now.
IndexKey key_of(const InputFile& file, const InputFile* second, uint64_t settings);

// Fills the index of a file. One without any document, good or bad, gets one bad for this reason.
constexpr const char* kNoDocuments = "no documents: the file is empty";
void scan(const Format& format, const ScanJob& job);
// The reader for what the index says of the file.
std::unique_ptr<DocumentFile> make_file(InputFile file, std::unique_ptr<Index> index, const ReaderOptions& options);

}  // namespace hlat::reader
