// The ranks as a grid of tensor parallel, pipeline and data parallel axes, and one Comm per axis for this rank.
// Rank order is pp, dp, tp: tp is innermost, so the ranks with the most traffic are neighbours (the cores of one node), and a pipeline
// stage is one consecutive range of ranks. Two smaller groups serve weights that several ranks hold: `kv`, the tp ranks
// that share kv heads, and `ends`, the first and last pipeline stage, which share a tied embedding. An axis is the list of
// this rank's peers along it, made in the constructor; all else about its groups follows from that list.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "comm/comm.h"
#include "config/config.h"
#include "config/head_share.h"

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

MeshShape mesh_shape(const ParallelConfig& parallel);  // parallel.dp must be known
MeshCoord coord_of(int rank, const MeshShape& shape);
// Of the ranks that hold the same rows of a batch one reads them: the first of tp, on the stages that begin or end the model.
bool reads_batches(const MeshCoord& coord, const MeshShape& shape);
int rank_of(const MeshCoord& coord, const MeshShape& shape);  // (pp * shape.dp + dp) * shape.tp + tp

// Groups of ranks. tp, pp and dp are the axes of the grid.
enum class Axis : uint8_t { tp, pp, dp, kv, ends };
inline constexpr int kAxes = 5;
std::string_view name_of(Axis axis);

// A group of ranks that includes this one. Groups of one name are distinguished by color, the first of their ranks.
struct AxisGroup {
  std::string name;
  int rank = 0, size = 1;  // of this rank within the group
  int color = 0;
};

class Mesh {
 public:
  using MakeComm = std::function<std::unique_ptr<Comm>(const AxisGroup&)>;

  // The grid the config asks for; parallel.dp must be known. `make` is called for the same axes in the same order on all ranks.
  Mesh(const Config& config, int rank, const MakeComm& make);
  // By splitting `world`, which must have as many ranks as the grid; `wrap` makes each group the one to use. Collective.
  using WrapComm = std::function<std::unique_ptr<Comm>(std::unique_ptr<Comm>)>;
  Mesh(const Config& config, Comm& world, const WrapComm& wrap);

  const MeshShape& shape() const { return shape_; }
  const MeshCoord& coord() const { return coord_; }
  const HeadShare& heads() const { return heads_; }
  bool first_stage() const { return coord_.pp == 0; }
  bool last_stage() const { return coord_.pp == shape_.pp - 1; }

  Comm& along(Axis axis) const { return *comms_[static_cast<size_t>(axis)]; }  // ends: a group of one on middle stages
  const std::vector<int>& ranks_along(Axis axis) const { return ranks_[static_cast<size_t>(axis)]; }  // its members, as ranks of the mesh
  // Whether all groups along this axis give equal terms the same sum, bit by bit. Two terms have only one.
  bool sums_agree(Axis axis) const { return along(axis).size() <= 2 || along(axis).summation() == Summation::rank_order; }
  bool crosses_stages(Axis axis) const;  // whether the group has ranks of several pipeline stages

  void reserve(Region& region) const;            // staging of every axis
  size_t host_bytes() const;                     // what that and the messages take of the host's memory outside the region
  void record_to(FlightRecorder& flight) const;  // all calls of its groups
  void check() const;                            // Error when an asynchronous operation has failed on some axis
  const std::array<std::unique_ptr<Comm>, kAxes>& comms() const { return comms_; }
  void reset_traffic() const {
    for (const auto& comm : comms_) comm->reset_traffic();
  }

 private:
  MeshShape shape_;
  MeshCoord coord_;
  HeadShare heads_;
  // By Axis.
  std::array<std::vector<int>, kAxes> ranks_;
  std::array<std::unique_ptr<Comm>, kAxes> comms_;
};

// The sum of a host value over the ranks of a group, or of the whole mesh: the same bits on every rank.
double sum_over(Comm& comm, double value);
double sum_over(const Mesh& mesh, double value);

}  // namespace hlat
