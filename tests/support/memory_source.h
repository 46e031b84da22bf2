// Documents made on the spot, for tests of the data path: every token of every document is different, so a lost or repeated one
// shows. Lengths run from 1 to well above a row, and long documents come in pieces.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "data/lanes.h"

namespace hlat {

class MemorySource : public DocumentSource {
 public:
  struct Shape {
    uint64_t documents = 40;  // 0: endless
    int32_t first_token = 0;
    uint64_t longest = 50;
    uint64_t piece = 20;  // tokens
    bool surprisals = false;
    uint64_t content = 0;  // another value: another file of the same name
    uint64_t cuts = 3;     // a document can be cut before every so many-th token
    uint64_t fixed = 0;    // all documents have this length
    uint64_t copies = 1;   // documents i and i + documents / copies have the same content
  };
  static constexpr int32_t kStride = 1000;  // token ids set aside for a document

  MemorySource(std::string name, const Shape& shape) : name_(std::move(name)), shape_(shape) {}

  uint64_t length(uint64_t document) const { return shape_.fixed > 0 ? shape_.fixed : 1 + document * 7 % shape_.longest; }
  std::vector<int32_t> tokens(uint64_t document) const {
    std::vector<int32_t> out;
    for (uint64_t i = 0; i < length(document); ++i)
      out.push_back(shape_.first_token + static_cast<int32_t>(document) * kStride + static_cast<int32_t>(i));
    return out;
  }
  uint64_t reads() const { return reads_; }
  void fail_from(uint64_t reads) { fail_from_ = reads; }  // every read from this one on

  const std::string& name() const override { return name_; }
  uint64_t documents() const override { return shape_.documents; }
  uint64_t hash(uint64_t document) const override {
    const uint64_t original = shape_.copies > 1 ? document % (shape_.documents / shape_.copies) : document;
    return hash_name(name_ + std::to_string(original) + "/" + std::to_string(shape_.content));
  }
  uint64_t size(uint64_t document) const override { return shape_.documents == 0 ? 0 : length(document); }
  uint64_t bytes() const override {
    uint64_t sum = 0;
    for (uint64_t d = 0; d < shape_.documents; ++d) sum += length(d);
    return sum;
  }
  std::vector<uint64_t> identity() const override { return {1, shape_.content}; }
  std::string part_name(size_t part) const override { return name_ + "_" + std::to_string(part) + ".jsonl"; }
  std::unique_ptr<DocumentReader> reader() const override { return std::make_unique<Reader>(*this); }

 private:
  class Reader : public DocumentReader {
   public:
    explicit Reader(const MemorySource& source) : source_(source) {}
    uint64_t read(uint64_t document, uint64_t from, uint64_t to, Document& out) override {
      if (source_.reads_++ >= source_.fail_from_) fail("{}.jsonl: line {} cannot be read", source_.name_, document + 1);
      const std::vector<int32_t> all = source_.tokens(document);
      const uint64_t end = std::min<uint64_t>({from + source_.shape_.piece, to, all.size()});
      out.tokens.assign(all.begin() + static_cast<int64_t>(from), all.begin() + static_cast<int64_t>(end));
      if (source_.shape_.surprisals)
        for (const int32_t t : out.tokens) out.surprisals.push_back(0.5 * t);
      return end == all.size() ? 0 : end;
    }
    uint64_t cut(uint64_t, uint64_t near) override { return near / source_.shape_.cuts * source_.shape_.cuts; }

   private:
    const MemorySource& source_;
  };

  std::string name_;
  Shape shape_;
  mutable std::atomic<uint64_t> reads_ = 0;
  uint64_t fail_from_ = ~uint64_t{0};
};

// Rows of lanes, read by this thread.
class RowReader {
 public:
  explicit RowReader(Lanes& lanes) : lanes_(lanes), readers_(lanes.mixture()) {}
  std::vector<int32_t> next(int64_t lane) {
    std::vector<int32_t> row(static_cast<size_t>(lanes_.seq_len()) + 1, -1);
    surprisal = lanes_.read_row(lane, readers_, row.data());
    return row;
  }
  std::optional<double> surprisal;  // of the last row

 private:
  Lanes& lanes_;
  Readers readers_;
};

}  // namespace hlat
