// The position of a run in its data: one small value that says where every lane stands, what it has served, and which data that
// was. Batches after a restore are those of an uninterrupted run, for any number of ranks and threads.
// As text it is one line of JSON with a version and a checksum.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/lanes.h"

namespace hlat {

// What decides the batches besides the files and the weights.
struct DataIdentity {
  uint64_t tokenizer = 0;  // fingerprint
  int64_t eos = -1, bos = -1;
  uint64_t seed = 0;
  double validation = 0;
  int64_t lanes = 0, seq_len = 0;
  bool operator==(const DataIdentity&) const = default;
};

struct SourceRecord {
  std::string name;
  uint64_t documents = 0;       // 0: endless
  std::vector<uint64_t> files;  // fingerprints
  bool operator==(const SourceRecord&) const = default;
};

struct DataState {
  DataIdentity identity;
  std::vector<SourceRecord> sources;
  std::vector<Segment> segments;  // begun so far
  int64_t first_lane = 0;         // of `lanes`; a rank knows those it serves
  std::vector<LaneState> lanes;   // all have served the same number of rows

  int64_t step() const { return lanes.empty() ? 0 : static_cast<int64_t>(lanes.front().rows); }
  uint64_t fingerprint() const;  // of identity and sources
  std::string save() const;
  static DataState parse(std::string_view text);  // an Error says why the text is no state, or a damaged one
  bool operator==(const DataState&) const = default;
};

// What a rank adds to the state of the first one that reads data: its lanes. Identity, sources with the fingerprints of all their files,
// and segments are the same on all ranks, and only the first has to tell them.
struct RankLanes {
  uint64_t data = 0;  // DataState::fingerprint of the run
  int64_t first_lane = 0;
  std::vector<LaneState> lanes;

  std::string save() const;
  static RankLanes parse(std::string_view text);  // Error: the text is none
  bool operator==(const RankLanes&) const = default;
};

// The state of all lanes, from that of the rank with the first ones and the shares of the others, in any order.
DataState join(DataState first, std::vector<RankLanes> others);

}  // namespace hlat
