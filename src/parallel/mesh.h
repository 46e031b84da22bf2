// The ranks as a grid of tensor parallel, pipeline and data parallel axes, and one Comm per axis for this rank.
// Rank order is pp, dp, tp: tp innermost. Two smaller groups serve weights that several ranks hold: `kv`, the tp ranks
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
#include "parallel/head_split.h"
#include "parallel/mesh_shape.h"

namespace hlat {

// Groups of ranks. tp, pp and dp are the axes of the grid.
enum class Axis : uint8_t { tp, pp, dp, kv, ends };
inline constexpr int kAxes = 5;
std::string_view name_of(Axis axis);

// A group of ranks that includes this one. Groups of one name are told apart by color, the first of their ranks.
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

  Comm& along(Axis axis) const { return *comms_[static_cast<size_t>(axis)]; }  // ends: a group of one on the stages in between
  const std::vector<int>& ranks_along(Axis axis) const { return ranks_[static_cast<size_t>(axis)]; }  // its members, as ranks of the mesh
  bool crosses_stages(Axis axis) const;  // whether the group has ranks of several pipeline stages

  void reserve(Region& region) const;  // staging of every axis
  size_t host_bytes() const;           // what that and the messages take of the host's memory beside the region
  void check() const;                  // Error when an operation beside this thread has failed on some axis
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

MeshShape mesh_shape(const ParallelConfig& parallel);

// The sum of a host value over the ranks of a group, or of the whole mesh: the same bits on every rank.
double sum_over(Comm& comm, double value);
double sum_over(const Mesh& mesh, double value);

}  // namespace hlat
