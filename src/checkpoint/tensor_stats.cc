#include "checkpoint/tensor_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "checkpoint/element_values.h"

namespace hlat {
namespace {

struct StatSums {
  int64_t elements = 0, zeros = 0, not_finite = 0;
  double min = std::numeric_limits<double>::infinity(), max = -min, sum = 0, squares = 0;

  void add(const StatSums& s) {
    elements += s.elements;
    zeros += s.zeros;
    not_finite += s.not_finite;
    min = std::min(min, s.min);
    max = std::max(max, s.max);
    sum += s.sum;
    squares += s.squares;
  }

  TensorStats stats() const {
    TensorStats out{.elements = elements, .zeros = zeros, .not_finite = not_finite};
    const int64_t finite = elements - not_finite;
    if (finite == 0) return out;
    const auto n = static_cast<double>(finite);
    out.min = min;
    out.max = max;
    out.mean = sum / n;
    out.rms = std::sqrt(squares / n);
    out.deviation = std::sqrt(std::max(0.0, squares / n - out.mean * out.mean));
    return out;
  }
};

template <class T>
StatSums sums_of(const T* x, int64_t count) {
  StatSums s;
  s.elements = count;
  for (int64_t i = 0; i < count; ++i) {
    const double v = to_f64(x[i]);
    if (!std::isfinite(v)) {
      ++s.not_finite;
      continue;
    }
    s.zeros += v == 0;
    s.min = std::min(s.min, v);
    s.max = std::max(s.max, v);
    s.sum += v;
    s.squares += v * v;
  }
  return s;
}

struct Place {
  size_t file, piece;
};

}  // namespace

std::vector<std::optional<TensorStats>> tensor_stats(CheckpointReader& reader, const std::vector<bool>& wanted, int threads,
                                                     const BytesDone& done) {
  const CheckpointIndex& index = reader.index();
  std::vector<Place> places;
  for (size_t f = 0; f < index.files.size(); ++f)
    for (size_t p = 0; p < index.files[f].pieces.size(); ++p)
      if (wanted[static_cast<size_t>(index.files[f].pieces[p].tensor)]) places.push_back({f, p});
  const auto piece_at = [&](size_t i) -> const Piece& { return index.files[places[i].file].pieces[places[i].piece]; };

  std::vector<StatSums> sums(places.size());
  for_all(places.size(), threads, [&](size_t i) {
    const Piece& piece = piece_at(i);
    const CheckpointReader::Bytes bytes = reader.read_piece(places[i].file, places[i].piece);
    sums[i] = with_elements(index.tensors[static_cast<size_t>(piece.tensor)].dtype, bytes->data(),
                            [&](const auto* x) { return sums_of(x, piece.count); });
    if (done) done(bytes->size());
  });

  std::vector<StatSums> of_tensor(index.tensors.size());
  for (size_t i = 0; i < places.size(); ++i) of_tensor[static_cast<size_t>(piece_at(i).tensor)].add(sums[i]);
  std::vector<std::optional<TensorStats>> out(index.tensors.size());
  for (size_t t = 0; t < out.size(); ++t)
    if (wanted[t]) out[t] = of_tensor[t].stats();
  return out;
}

}  // namespace hlat
