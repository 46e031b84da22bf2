// What one process of a machine found out about the data, and hands to the others there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlat {

// What the first process of a machine found out about its data, for the others there: they need not hash the document indices nor walk
// them again, and notice when theirs are not the same.
struct DatasetFacts {
  struct Source {
    std::vector<uint64_t> files;             // fingerprints
    uint64_t held_out = 0;                   // documents
    std::vector<uint64_t> validation_files;  // fingerprints of those that are only validated on
    bool operator==(const Source&) const = default;
  };
  std::vector<Source> sources;  // in the order of the config; none of the embedded corpus

  std::string save() const;  // JSON
  static DatasetFacts parse(std::string_view text);
  bool operator==(const DatasetFacts&) const = default;
};

}  // namespace hlat
