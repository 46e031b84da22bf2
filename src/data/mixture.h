// Which document a lane reads next. A source's endless stream is its documents in the order of a keyed permutation, a new one for
// each epoch; of n lanes, lane l owns positions l, l + n, l + 2n, ... of every source, so an epoch has every document once.
//
// The source of the next document is the one that is furthest behind its share of the tokens:
//   argmin over s of (tokens of s drawn by the lane in this segment + phase(lane, segment, s)) / weight(s)
// A lane's token counts so stay within about a document of the weights. The phase, up to a typical document long, is random and keyed
// by lane: it spreads the lanes over the mixture from the start. A segment is a part of the run with one set of weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/source.h"

namespace hlat {

struct Segment {
  int64_t from_step = 1;        // its first step; steps count from 1
  std::vector<double> weights;  // by source, shares of tokens that sum to 1
  bool operator==(const Segment&) const = default;
};

// Neighbours with equal weights become one segment.
void append_segment(std::vector<Segment>& segments, Segment next);

// What a lane has taken from a source in a segment.
struct LaneCount {
  uint64_t documents = 0;  // begun
  uint64_t tokens = 0;     // served
  bool operator==(const LaneCount&) const = default;
};

enum class Split : uint8_t { train, validation };

// Whether a document is held out: decided by its content, so copies of it share its fate in every file.
bool is_validation(uint64_t hash, double share);

struct Mixture {
  std::vector<const DocumentSource*> sources;  // null: one of an earlier part of the run that is gone; its weights are 0
  std::vector<std::string> names;              // of all sources
  std::vector<Segment> segments;               // the first from step 1, by increasing from_step
  uint64_t seed = 0;                           // of the order
  double validation = 0;                       // share of documents held out
  Split split = Split::train;

  size_t segment_at(int64_t step) const;
  // The source of lane's next document, when `counts` (one per source) is what it drew in the segment.
  size_t choose(uint64_t lane, size_t segment, const LaneCount* counts) const;
  // The document at a position of a source's stream.
  uint64_t document_at(size_t source, uint64_t position) const;
  bool has(size_t source, uint64_t document) const;  // in this split
};

Mixture single_source(const DocumentSource& source, uint64_t seed = 0);  // all of one source

// Shares that sum to 1. Weights must not be negative, and not all be 0.
std::vector<double> shares(std::vector<double> weights);

}  // namespace hlat
