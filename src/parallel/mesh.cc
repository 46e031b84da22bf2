#include "parallel/mesh.h"

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "comm/host_exchange.h"

namespace hlat {

std::string_view name_of(Axis axis) {
  constexpr std::array<std::string_view, kAxes> names = {"tp", "pp", "dp", "kv", "ends"};
  return names[static_cast<size_t>(axis)];
}

MeshShape mesh_shape(const ParallelConfig& p) {
  HLAT_CHECK(p.dp > 0, "parallel.dp is not resolved");
  return {.tp = static_cast<int>(p.tp), .pp = static_cast<int>(p.pp), .dp = static_cast<int>(p.dp)};
}

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

Mesh::Mesh(const Config& config, int rank, const MakeComm& make)
    : shape_(mesh_shape(config.parallel)),
      coord_(coord_of(rank, shape_)),
      heads_(share_heads(config.model.heads, config.model.kv(), coord_.tp, shape_.tp)) {
  const auto add = [&](Axis axis, std::vector<int> ranks) {
    const auto place = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    comms_[static_cast<size_t>(axis)] =
        make({std::string(name_of(axis)), static_cast<int>(place), static_cast<int>(ranks.size()), ranks.front()});
    ranks_[static_cast<size_t>(axis)] = std::move(ranks);
  };
  // The ranks that differ from this one only in one coordinate, which takes the values begin, begin + stride, ...
  const auto line = [&](int MeshCoord::*coordinate, int64_t begin, int64_t count, int64_t stride = 1) {
    std::vector<int> ranks;
    MeshCoord c = coord_;
    for (int64_t i = 0; i < count; ++i) {
      c.*coordinate = static_cast<int>(begin + i * stride);
      ranks.push_back(rank_of(c, shape_));
    }
    return ranks;
  };
  add(Axis::tp, line(&MeshCoord::tp, 0, shape_.tp));
  add(Axis::dp, line(&MeshCoord::dp, 0, shape_.dp));
  add(Axis::pp, line(&MeshCoord::pp, 0, shape_.pp));
  along(Axis::pp).open_ring();
  add(Axis::kv, line(&MeshCoord::tp, heads_.kv_ranks.begin, heads_.kv_ranks.count));
  const bool end = shape_.pp > 1 && (first_stage() || last_stage());
  add(Axis::ends, end ? line(&MeshCoord::pp, 0, 2, shape_.pp - 1) : std::vector{rank});
}

Mesh::Mesh(const Config& config, Comm& world, const WrapComm& wrap)
    : Mesh(config, world.rank(), [&](const AxisGroup& g) {
        auto comm = world.split(g.color, g.rank, g.name);
        HLAT_CHECK(comm->size() == g.size && comm->rank() == g.rank, "axis {}: rank {} of {}, expected {} of {}", g.name, comm->rank(),
                   comm->size(), g.rank, g.size);
        return wrap(std::move(comm));
      }) {
  HLAT_CHECK(world.size() == shape_.ranks(), "{} ranks for a grid of {}", world.size(), shape_.ranks());
}

bool Mesh::crosses_stages(Axis axis) const {
  return coord_of(ranks_along(axis).front(), shape_).pp != coord_of(ranks_along(axis).back(), shape_).pp;
}

double sum_over(Comm& comm, double value) {
  const std::vector<double> all = all_gather_values(comm, value);
  return std::accumulate(all.begin() + 1, all.end(), all[0]);
}

double sum_over(const Mesh& mesh, double value) {
  return sum_over(mesh.along(Axis::pp), sum_over(mesh.along(Axis::dp), sum_over(mesh.along(Axis::tp), value)));
}

void Mesh::reserve(Region& region) const {
  for (const auto& comm : comms_) comm->reserve(region);
}

size_t Mesh::host_bytes() const {
  size_t sum = 0;
  for (const auto& comm : comms_) sum += comm->host_bytes();
  return sum;
}

void Mesh::record_to(FlightRecorder& flight) const {
  flight.mesh(shape_.tp, shape_.pp, shape_.dp);
  for (int i = 0; i < kAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    along(axis).record_to(flight, hash_name(fmt::format("{} {}", name_of(axis), ranks_along(axis).front())));
  }
}

void Mesh::check() const {
  for (const auto& comm : comms_) comm->check();
}

}  // namespace hlat
