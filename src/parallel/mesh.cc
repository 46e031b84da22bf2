#include "parallel/mesh.h"

#include <numeric>

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

Mesh::Mesh(const Config& config, int rank, const MakeComm& make)
    : shape_(mesh_shape(config.parallel)),
      coord_(coord_of(rank, shape_)),
      heads_(share_heads(config.model.heads, config.model.kv(), coord_.tp, shape_.tp)) {
  const auto [tp, pp, dp] = coord_;
  const auto add = [&](Axis axis, int place, int size, int color) {
    comms_[static_cast<size_t>(axis)] = make({std::string(name_of(axis)), place, size, color});
  };
  const int tp_group = pp * shape_.dp + dp;
  add(Axis::tp, tp, shape_.tp, tp_group);
  add(Axis::dp, dp, shape_.dp, pp * shape_.tp + tp);
  add(Axis::pp, pp, shape_.pp, dp * shape_.tp + tp);
  along(Axis::pp).open_ring();
  const int kv_begin = static_cast<int>(heads_.kv_ranks.begin), kv_size = static_cast<int>(heads_.kv_ranks.count);
  add(Axis::kv, tp - kv_begin, kv_size, tp_group * shape_.tp + kv_begin);
  const bool end = shape_.pp > 1 && (first_stage() || last_stage());
  // Stages in between are groups of their own.
  const int column = dp * shape_.tp + tp;
  add(Axis::ends, end && last_stage() ? 1 : 0, end ? 2 : 1, end ? column : shape_.dp * shape_.tp + rank);
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

void Mesh::check() const {
  for (const auto& comm : comms_) comm->check();
}

}  // namespace hlat
