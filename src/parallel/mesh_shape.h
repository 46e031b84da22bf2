// The mesh of ranks as plain numbers: its degrees, a rank's place in it, and the way back.
// Order pp, dp, tp: tp is innermost, so the ranks that talk most are neighbours (the cores of one node), and a pipeline
// stage is one consecutive range of ranks.
#pragma once

namespace hlat {

struct MeshShape {
  int tp = 1;
  int pp = 1;
  int dp = 1;
  int ranks() const { return tp * pp * dp; }
  bool operator==(const MeshShape&) const = default;
};

struct MeshCoord {
  int tp = 0;
  int pp = 0;
  int dp = 0;
  bool operator==(const MeshCoord&) const = default;
};

MeshCoord coord_of(int rank, const MeshShape& shape);
// Of the ranks that hold the same rows of a batch one reads them: the first of tp, on the stages that begin or end the model.
bool reads_batches(const MeshCoord& coord, const MeshShape& shape);
int rank_of(const MeshCoord& coord, const MeshShape& shape);  // (pp * shape.dp + dp) * shape.tp + tp

}  // namespace hlat
