// Where documents come from. A source is a pure function from document index to tokens, so any lane can ask for
// any document at any time and a position in the data is just an index. Sources are safe to read from many threads.
#pragma once

#include <cstdint>
#include <vector>

namespace hlat {

struct Document {
  std::vector<int32_t> tokens;     // ends with the source's end-of-document token
  std::vector<double> surprisals;  // nats, -log p(token | document so far); empty when the true source is unknown
};

class DocumentSource {
 public:
  virtual ~DocumentSource() = default;
  virtual Document document(uint64_t index) const = 0;
};

}  // namespace hlat
