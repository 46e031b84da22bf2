// Who reads what of a source: the documents of an epoch in its order, divided among the lanes into stretches of the same size. A stretch
// begins and ends between documents where that leaves the stretches nearly equal, else inside a document, so that one long document has
// something for every lane. The place given there is a wish: the reader's cut() turns it into a place where no token changes, and both
// neighbours find the same. Each epoch gives the stretches to other lanes. Shared by threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "data/mixture.h"

namespace hlat {

struct LaneShare {
  struct Place {
    uint64_t position = 0;  // in the order of the epoch
    uint64_t at = 0;        // in the document there; 0: at its start
  };
  Place begin, end;
};

class LaneShares {
 public:
  // The mixture must outlive this.
  LaneShares(const Mixture& mixture, uint64_t lanes) : mixture_(mixture), lanes_(lanes) {}

  LaneShare share(size_t source, uint64_t epoch, uint64_t lane);  // of a source that has an end

 private:
  using Borders = std::vector<LaneShare::Place>;  // of the lanes' shares: lanes + 1
  std::shared_ptr<const Borders> borders(size_t source, uint64_t epoch);
  Borders by_size(size_t source, uint64_t epoch) const;
  Borders by_count(size_t source) const;

  const Mixture& mixture_;
  uint64_t lanes_;
  std::mutex mutex_;
  std::vector<std::map<uint64_t, std::shared_ptr<const Borders>>> known_;  // by source and epoch, the latest few
};

// What a document adds to the size of a source: one for its end, so that an empty one counts.
inline uint64_t extent_of(const DocumentSource& source, uint64_t document) { return source.size(document) + 1; }

// The size of all documents of a source that are in the mixture's split. Exact up to a million documents, and without held-out ones.
double split_extent(const Mixture& mixture, size_t source);

}  // namespace hlat
