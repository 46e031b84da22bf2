// Packing lanes: the data stream is one lane per sequence of the global batch. A lane has a place in every source and reads its share of
// each (lane_shares.h) end to end; a row holds T + 1 tokens of the source that the mixture names for it, and begins with the token that
// the lane's last row of that source ended with. So each token of a source but the very first of a lane is a target exactly once.
// Lanes do not know ranks: any split of them over data-parallel ranks sees the same batches. Different lanes may be read by
// different threads at the same time; the mixture and its sources must outlive the lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/lane_shares.h"
#include "data/mixture.h"

namespace hlat {

// Where a lane stands in a source.
struct Cursor {
  static constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t epoch = 0;
  uint64_t position = kNone;  // of the current document in the order of the epoch; none before the first
  uint64_t piece = 0;         // where the current piece begins in the document
  uint64_t offset = 0;        // tokens of the piece that lie behind
  uint64_t size = 0;          // of the piece, in the document's places
  uint64_t tokens = 0;        // of the piece
  uint64_t end = 0;           // where the lane's share of the document ends
  uint64_t behind = 0;        // size of all pieces that were read to their end
  // Size of what was read, the current piece in proportion to its tokens.
  double read() const {
    const double part = tokens == 0 ? 0 : static_cast<double>(offset) / static_cast<double>(tokens);
    return static_cast<double>(behind) + part * static_cast<double>(size);
  }
  bool operator==(const Cursor&) const = default;
};

// Where the next rows of a lane start, and what the lane has served. This is all there is to save.
struct LaneState {
  uint64_t rows = 0;              // served; row r belongs to step r + 1
  uint64_t repeats = 0;           // documents begun in a row that already held the same content
  std::vector<Cursor> cursors;    // by source
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
  uint64_t piece = 0;   // where the piece it comes from begins in the document
  uint64_t offset = 0;  // tokens of the piece before it
};

class Lanes {
 public:
  Lanes(const Mixture& mixture, int64_t lanes, int64_t seq_len);

  // The next row of a lane, T + 1 tokens; the lane moves on. Returns the sum of the targets' surprisals in nats where its source
  // knows them. It assumes the whole document so far is known, so it is a floor for the loss of rows that start inside a document.
  // `parts`, where asked for, tells where the tokens come from.
  std::optional<double> read_row(int64_t lane, Readers& readers, int32_t* row /* (T + 1) */, std::vector<RowPart>* parts = nullptr);

  int64_t lanes() const { return static_cast<int64_t>(lanes_.size()); }
  int64_t seq_len() const { return seq_len_; }
  const Mixture& mixture() const { return mixture_; }
  const LaneState& state(int64_t lane) const { return lanes_[static_cast<size_t>(lane)].state; }
  void restore(int64_t lane, LaneState state);  // a position that does not fit the data is an Error at the next row

 private:
  // The piece under way of one source.
  struct Open {
    uint64_t document = 0;
    uint64_t to = DocumentReader::kEnd;  // where the lane's share of the document ends
    uint64_t next = 0;                   // where the piece after this begins; 0: the document ends
    bool loaded = false;
    Document piece;
    std::optional<LaneShare> share;  // of the cursor's epoch
  };
  struct Lane {
    LaneState state;
    std::vector<Open> open;        // by source
    std::vector<uint64_t> in_row;  // hashes of the documents in the row under way
  };
  // One source of one lane, for the row under way.
  struct Stream {
    uint64_t lane;
    size_t source;
    Cursor& at;
    Open& open;
    LaneCount& count;
    DocumentReader& reader;
  };
  void ensure_token(Stream& s);
  void next_document(Stream& s);
  bool enter(Stream& s, uint64_t position);
  void load(Stream& s);
  void note_document(Stream& s);
  const LaneShare& share(Stream& s);

  const Mixture& mixture_;
  int64_t seq_len_;
  std::shared_ptr<LaneShares> shares_;
  std::vector<Lane> lanes_;
};

}  // namespace hlat
