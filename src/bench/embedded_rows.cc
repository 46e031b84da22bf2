#include "bench/embedded_rows.h"

namespace hlat {

EmbeddedRows::EmbeddedRows(const Config& config, const Mesh& mesh)
    : corpus_(config.data.seed),
      mixture_(single_source(corpus_)),
      loader_(Lanes(mixture_, config.train.global_batch, config.train.seq_len),
              part_of(config.train.global_batch, mesh.coord().dp, mesh.shape().dp), {}) {}

}  // namespace hlat
