// Rows of the embedded corpus for one rank: batches of any config for benchmarks, without files.
#pragma once

#include "config/config.h"
#include "data/embedded/corpus.h"
#include "data/loader.h"
#include "parallel/mesh.h"

namespace hlat {

class EmbeddedRows : public BatchSource {
 public:
  EmbeddedRows(const Config& config, const Mesh& mesh);
  void read(int64_t first, Batch& batch) override { loader_.fill(first, batch); }

 private:
  EmbeddedCorpus corpus_;
  Mixture mixture_;
  Loader loader_;
};

}  // namespace hlat
