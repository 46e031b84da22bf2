// The documents that a batch was made of, for whoever looks for what made a loss jump: from where the lanes stood before it, read once
// more, so that a loader that has gone on is not disturbed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/lanes.h"

namespace hlat {

// What one row has of one document.
struct BatchDocument {
  int64_t row = 0;  // of the global batch
  std::string source, file;
  uint64_t document = 0;  // number in the file, from 0
  uint64_t byte = 0;      // in the document, of the piece that holds the first token
  uint64_t token = 0;     // of that piece: the first one
  int64_t tokens = 0;
  bool operator==(const BatchDocument&) const = default;
};

struct BatchDocuments {
  uint64_t count = 0;                // of all
  std::vector<BatchDocument> first;  // by row; as many as are told
};
inline constexpr size_t kToldDocuments = 64;

// Of the next row of lanes [first_lane, first_lane + states.size()) of `lanes`, which stand so.
BatchDocuments documents_of(const Mixture& mixture, int64_t lanes, int64_t seq_len, int64_t first_lane,
                            const std::vector<LaneState>& states, size_t most = kToldDocuments);

}  // namespace hlat
