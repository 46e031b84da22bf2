#include "data/held_out.h"

#include <span>

#include "base/error.h"

namespace hlat {
namespace {

// Bytes of the text behind the targets of a row that starts with a document; `parts` as Lanes::read_row gives them.
size_t bytes_of_targets(const Tokenizer& tokenizer, const SpecialTokens& special, const std::vector<int32_t>& row,
                        const std::vector<RowPart>& parts) {
  // The text of a document's first tokens is certain; that of tokens from its middle may hang on what stands before.
  const std::span<const int32_t> all(row);
  size_t bytes = 0;
  for (size_t i = 0; i < parts.size();) {
    size_t j = i + 1;  // pieces of one document belong together
    while (j < parts.size() && !parts[j].starts && !parts[j - 1].ends && parts[j].document == parts[i].document) ++j;
    const auto begin = static_cast<size_t>(parts[i].begin), end = static_cast<size_t>(parts[j - 1].begin + parts[j - 1].count);
    bytes += text_of(tokenizer, special, all.subspan(begin, end - begin)).size();
    i = j;
  }
  return bytes - text_of(tokenizer, special, all.first(1)).size();  // the row's first token is no target
}

}  // namespace

HeldOutRows::HeldOutRows(const Dataset& data, const ValidationSet& set, int64_t rows, Part own) : seq_len_(data.identity().seq_len) {
  HLAT_CHECK(own.begin >= 0 && own.count > 0 && own.end() <= rows, "rows [{}, {}) of {}", own.begin, own.end(), rows);
  Lanes lanes(set.mixture, rows, seq_len_);
  Readers readers(set.mixture);
  std::vector<int32_t> row(static_cast<size_t>(seq_len_) + 1);
  for (int64_t r = own.begin; r < own.end(); ++r) {
    std::vector<RowPart> parts;
    lanes.read_row(r, readers, row.data(), &parts);
    tokens_.insert(tokens_.end(), row.begin(), row.end());
    target_bytes_ += bytes_of_targets(data.tokenizer(), data.special(), row, parts);
  }
}

void HeldOutRows::read(int64_t first, Batch& batch) {
  HLAT_CHECK(first >= 0 && first + batch.rows <= rows() && batch.seq_len == seq_len_, "rows [{}, {}) of {} tokens from {} rows of {}",
             first, first + batch.rows, batch.seq_len, rows(), seq_len_);
  for (int64_t i = 0; i < batch.rows; ++i) batch.set_row(i, tokens_.data() + (first + i) * (seq_len_ + 1));
}

}  // namespace hlat
