// Packing lanes: the data stream is one lane per sequence of the global batch. A lane reads the documents that the mixture gives it
// end to end; its row r holds stream tokens [r T, r T + T], so each token but the very first is a target exactly once.
// Lanes do not know ranks: any split of them over data-parallel ranks sees the same batches. Different lanes may be read by
// different threads at the same time; the mixture and its sources must outlive the lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/mixture.h"

namespace hlat {

// Where the next row of a lane starts, and what the lane has served. This is all there is to save.
struct LaneState {
  static constexpr uint32_t kNone = ~0u;
  uint64_t rows = 0;              // served; row r belongs to step r + 1
  uint32_t source = kNone;        // of the current document; none before the first row
  uint64_t piece = 0;             // where the current piece begins in the document
  uint64_t offset = 0;            // tokens of the piece that lie behind
  uint64_t repeats = 0;           // documents begun in a row that already held the same content
  std::vector<uint64_t> drawn;    // by source: positions of the lane that lie behind, the current document's included
  std::vector<LaneCount> counts;  // by segment, then by source
  bool operator==(const LaneState&) const = default;
};

// One thread's access to all sources.
class Readers {
 public:
  explicit Readers(const Mixture& mixture);
  DocumentReader& operator[](size_t source) { return *readers_[source]; }

 private:
  std::vector<std::unique_ptr<DocumentReader>> readers_;
};

// A stretch of a row that comes from one document.
struct RowPart {
  uint32_t source = 0;
  uint64_t document = 0;
  int64_t begin = 0;  // first token in the row
  int64_t count = 0;
  bool starts = false;  // with the document's first token
  bool ends = false;    // with its last
};

class Lanes {
 public:
  Lanes(const Mixture& mixture, int64_t lanes, int64_t seq_len);

  // The next row of a lane, T + 1 tokens; the lane moves on. Returns the sum of the targets' surprisals in nats where all its sources
  // know them. It assumes the whole document so far is known, so it is a floor for the loss of rows that start inside a document.
  // `parts`, where asked for, tells where the tokens come from.
  std::optional<double> read_row(int64_t lane, Readers& readers, int32_t* row /* (T + 1) */, std::vector<RowPart>* parts = nullptr);

  int64_t lanes() const { return static_cast<int64_t>(lanes_.size()); }
  int64_t seq_len() const { return seq_len_; }
  const Mixture& mixture() const { return mixture_; }
  const LaneState& state(int64_t lane) const { return lanes_[static_cast<size_t>(lane)].state; }
  void restore(int64_t lane, LaneState state);  // a position that does not fit the data is an Error at the next row

 private:
  struct Lane {
    LaneState state;
    uint64_t document = 0;         // current; known once the piece is loaded
    uint64_t next = 0;             // where the piece after the current one begins; 0: it is the last
    Document piece;                // empty until needed
    std::vector<uint64_t> in_row;  // hashes of the documents in the row under way
  };
  void ensure_token(size_t lane, size_t segment, Readers& readers);
  void draw(size_t lane, size_t segment);
  uint64_t current_document(size_t lane) const;
  void load(size_t lane, Readers& readers);

  const Mixture& mixture_;
  int64_t seq_len_;
  std::vector<Lane> lanes_;
};

}  // namespace hlat
