#include "parallel/mesh_shape.h"

#include "base/error.h"

namespace hlat {

MeshCoord coord_of(int rank, const MeshShape& s) {
  HLAT_CHECK(s.tp > 0 && s.pp > 0 && s.dp > 0, "mesh of tp {} x pp {} x dp {}", s.tp, s.pp, s.dp);
  HLAT_CHECK(rank >= 0 && rank < s.ranks(), "rank {} of {}", rank, s.ranks());
  return {.tp = rank % s.tp, .pp = rank / (s.tp * s.dp), .dp = rank / s.tp % s.dp};
}

bool reads_batches(const MeshCoord& c, const MeshShape& s) { return c.tp == 0 && (c.pp == 0 || c.pp == s.pp - 1); }

int rank_of(const MeshCoord& c, const MeshShape& s) {
  HLAT_CHECK(c.tp >= 0 && c.tp < s.tp && c.pp >= 0 && c.pp < s.pp && c.dp >= 0 && c.dp < s.dp,
             "coordinate tp {} pp {} dp {} in a mesh of tp {} x pp {} x dp {}", c.tp, c.pp, c.dp, s.tp, s.pp, s.dp);
  return (c.pp * s.dp + c.dp) * s.tp + c.tp;
}

}  // namespace hlat
