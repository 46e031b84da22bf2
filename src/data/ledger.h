// What was read: documents, tokens and epochs of each source, in all and by segment, and what a change of weights left unread. Counts are
// sums over lanes, so that the tokens of all sources are exactly those of the rows that were served.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/lanes.h"

namespace hlat {

struct Ledger {
  struct Line {
    std::string source;
    uint64_t documents = 0;  // begun
    uint64_t tokens = 0;     // served
    double epochs = 0;       // passes over its text, token by token; NaN: the source is endless or gone
    double weight = 0;       // of the segment
    uint64_t open = 0;       // documents that lanes have begun and the last segment does not go on with
    double unread = 0;       // tokens that are left of them, about
  };
  struct Part {
    int64_t from_step = 1;
    std::vector<Line> lines;  // by source
  };
  std::vector<Line> total;  // by source
  std::vector<Part> segments;
  uint64_t repeats = 0;  // documents whose content was already in their row
  // Read, counted above and not trained on (train/loss_policy.h).
  uint64_t skipped_rows = 0, skipped_tokens = 0;

  uint64_t tokens() const;
  uint64_t documents() const;
};

// Adds a number up over the ranks that share the lanes.
using SumOver = std::function<double(double)>;

// `sum` is called the same number of times on all ranks.
Ledger ledger_of(const Mixture& mixture, const std::vector<LaneState>& lanes, const SumOver& sum);
std::string ledger_text(const Ledger& ledger);

}  // namespace hlat
