// Which source a row comes from, and in which order a source's documents come.
//
// A row holds text of one source. The lanes of a step stand at even distances on a ring whose arcs are the weights. From step to step the
// ring turns by the golden ratio, so that each lane meets every source by its weight, and the lanes' distance from the arcs' borders moves
// by the square root of two, so that what a step rounds the next ones make up for. The shares of the rows so follow the weights to within a
// few rows in every window, from the first step of the run and of a segment on, whatever the lengths of the documents. A segment is a
// part of the run with one set of weights. The order of the documents is a keyed permutation, a new one for each epoch.
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
  uint64_t documents = 0;  // whose first token it read
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
  // Lanes share an epoch of a source evenly; a document that is larger than this part of a lane's share is cut where two shares meet.
  double cut_share = 1.0 / 16;

  size_t segment_at(int64_t step) const;
  // The source of row `row` (from 0, so it belongs to step row + 1) of a lane.
  size_t source_of(uint64_t row, uint64_t lane, uint64_t lanes) const;
  // Rows of a step (from 1) by source, over all lanes.
  std::vector<int64_t> rows_by_source(int64_t step, uint64_t lanes) const;
  // The document at a position of an epoch; an endless source is one epoch in its own order.
  uint64_t document_at(size_t source, uint64_t epoch, uint64_t position) const;
  bool has(size_t source, uint64_t document) const;  // in this split
};

Mixture single_source(const DocumentSource& source, uint64_t seed = 0);  // all of one source

// Shares that sum to 1. Weights must not be negative, and not all be 0.
std::vector<double> shares(std::vector<double> weights);

}  // namespace hlat
