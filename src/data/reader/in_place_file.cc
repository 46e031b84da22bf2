// Texts that stand in the data file as they are: one read.
#include "data/reader/indexed_file.h"

namespace hlat::reader {
namespace {

class InPlaceFile final : public IndexedFile {
 public:
  InPlaceFile(InputFile file, std::unique_ptr<Index> index) : IndexedFile(std::move(file), std::move(index)) {}

  void text_part(uint64_t document, uint64_t begin, uint64_t bytes, std::string& out) const override {
    part_of_file(entry(document).offset, entry(document).length, begin, bytes, out);
  }

 protected:
  void fetch(const IndexEntry& entry, std::string& out) const override {
    check_range(entry.offset, entry.length);
    out.resize(entry.length);
    file().read_exactly(entry.offset, out.data(), out.size());
  }
};

}  // namespace

std::unique_ptr<DocumentFile> make_in_place(InputFile file, std::unique_ptr<Index> index) {
  return std::make_unique<InPlaceFile>(std::move(file), std::move(index));
}

}  // namespace hlat::reader
