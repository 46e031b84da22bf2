// Random access to a plain .jsonl file: one read of the line, one parse.
#include "data/reader/indexed_file.h"
#include "data/reader/json_line.h"

namespace hlat::reader {
namespace {

class JsonLinesFile final : public IndexedFile {
 public:
  JsonLinesFile(InputFile file, std::unique_ptr<Index> index, const std::string& field)
      : IndexedFile(std::move(file), std::move(index)), field_(field) {}

 protected:
  void fetch(const IndexEntry& entry, std::string& out) const override {
    // Buffers of a thread, whichever files it reads; they carry nothing from one read to the next.
    thread_local JsonLineParser parser;
    thread_local std::vector<char> line;
    check_range(entry.offset, entry.stored);
    line.resize(entry.stored + kJsonPadding);
    file().read_exactly(entry.offset, line.data(), entry.stored);
    const JsonText found = parser.parse({line.data(), entry.stored}, field_);
    if (found.kind != JsonText::Kind::text) fail_changed();
    out = found.text;
    if (line.capacity() > kKeep) line = {};
  }

 private:
  static constexpr size_t kKeep = 16 << 20;
  std::string field_;
};

}  // namespace

std::unique_ptr<DocumentFile> make_json_lines(InputFile file, std::unique_ptr<Index> index, const std::string& field) {
  return std::make_unique<JsonLinesFile>(std::move(file), std::move(index), field);
}

}  // namespace hlat::reader
