#include "checkpoint/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "checkpoint/element_values.h"

namespace hlat {
namespace {

using TensorKey = std::pair<StateKind, std::string>;

struct Pair {
  int32_t a, b;
};

struct Pairs {
  std::vector<Pair> both;
  std::vector<int32_t> only_a, only_b;
};

Pairs pair_tensors(const CheckpointIndex& a, const CheckpointIndex& b, DiffWhat what) {
  const auto wanted = [&](const SavedTensor& t) { return what == DiffWhat::all || t.kind == StateKind::weight; };
  std::map<TensorKey, int32_t> others;
  for (size_t i = 0; i < b.tensors.size(); ++i)
    if (wanted(b.tensors[i])) others[{b.tensors[i].kind, b.tensors[i].name}] = static_cast<int32_t>(i);
  Pairs out;
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    if (!wanted(a.tensors[i])) continue;
    const auto found = others.find({a.tensors[i].kind, a.tensors[i].name});
    if (found == others.end()) {
      out.only_a.push_back(static_cast<int32_t>(i));
      continue;
    }
    out.both.push_back({static_cast<int32_t>(i), found->second});
    others.erase(found);
  }
  for (const auto& [key, i] : others) out.only_b.push_back(i);
  std::sort(out.only_b.begin(), out.only_b.end());
  return out;
}

const SavedTensor& tensor(const CheckpointIndex& index, int32_t i) { return index.tensors[static_cast<size_t>(i)]; }

bool comparable(const CheckpointIndex& a, const CheckpointIndex& b, const Pair& p) { return tensor(a, p.a).shape == tensor(b, p.b).shape; }

struct Sums {
  int64_t differing = 0, not_comparable = 0, largest_at = 0, finite = 0;
  double largest = 0, sum = 0, squares = 0;

  void add(const Sums& s) {
    differing += s.differing;
    not_comparable += s.not_comparable;
    if (s.largest > largest) {
      largest = s.largest;
      largest_at = s.largest_at;
    }
    sum += s.sum;
    squares += s.squares;
    finite += s.finite;
  }
};

bool same(float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); }
bool same(bf16 x, bf16 y) { return x.bits == y.bits; }
template <class A, class B>
bool same(A x, B y) {
  const double v = to_f64(x), w = to_f64(y);
  return v == w || (std::isnan(v) && std::isnan(w));
}

template <class A, class B>
Sums compare_range(const A* a, const B* b, int64_t first, int64_t count) {
  Sums s;
  for (int64_t i = 0; i < count; ++i) {
    const double v = to_f64(a[i]);
    if (std::isfinite(v)) {
      ++s.finite;
      s.squares += v * v;
    }
    if (same(a[i], b[i])) continue;
    ++s.differing;
    const double d = std::abs(v - to_f64(b[i]));
    if (!std::isfinite(d)) {
      ++s.not_comparable;
      continue;
    }
    s.sum += d;
    if (d > s.largest) {
      s.largest = d;
      s.largest_at = first + i;
    }
  }
  return s;
}

// Elements of both tensors of a pair.
struct Range {
  size_t pair;
  int64_t first, count;
};

std::vector<Range> ranges_of(const CheckpointIndex& a, const CheckpointIndex& b, const std::vector<Pair>& pairs) {
  std::vector<Range> out;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!comparable(a, b, pairs[i])) continue;
    const SavedTensor &x = tensor(a, pairs[i].a), &y = tensor(b, pairs[i].b);
    // A whole piece of the smaller type where tensors are cut from their beginning on, so that threads do not share pieces.
    const auto most = static_cast<int64_t>(kMaxPiece / std::min(size_of(x.dtype), size_of(y.dtype)));
    for (int64_t first = 0, n = x.shape.numel(); first < n; first += most) out.push_back({i, first, std::min(most, n - first)});
  }
  return out;
}

TensorDifference finished(const SavedTensor& a, const SavedTensor& b, const Sums& s) {
  TensorDifference d{.a = a, .b = b, .differing = s.differing, .not_comparable = s.not_comparable, .largest = s.largest};
  d.largest_at = s.largest_at;
  const int64_t compared = a.shape.numel() - s.not_comparable;
  if (compared > 0) d.mean = s.sum / static_cast<double>(compared);
  if (s.finite > 0) d.rms = std::sqrt(s.squares / static_cast<double>(s.finite));
  return d;
}

std::vector<std::string> record_differences(const CheckpointIndex& a, const CheckpointIndex& b) {
  std::vector<std::string> names;
  for (const Record& r : a.records)
    if (const Record* other = b.find_record(r.name); other == nullptr || !(*other == r)) names.push_back(r.name);
  for (const Record& r : b.records)
    if (a.find_record(r.name) == nullptr) names.push_back(r.name);
  return names;
}

}  // namespace

bool CheckpointDifference::identical_tensors() const {
  return only_a.empty() && only_b.empty() && std::all_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.identical(); });
}

uint64_t diff_bytes(const CheckpointIndex& a, const CheckpointIndex& b, DiffWhat what) {
  uint64_t sum = 0;
  for (const Pair& p : pair_tensors(a, b, what).both)
    if (comparable(a, b, p))
      sum += static_cast<uint64_t>(tensor(a, p.a).shape.numel()) * (size_of(tensor(a, p.a).dtype) + size_of(tensor(b, p.b).dtype));
  return sum;
}

CheckpointDifference compare_checkpoints(CheckpointReader& a, CheckpointReader& b, DiffWhat what, int threads, const BytesDone& done) {
  const CheckpointIndex &left = a.index(), &right = b.index();
  const Pairs pairs = pair_tensors(left, right, what);
  const std::vector<Range> ranges = ranges_of(left, right, pairs.both);
  std::vector<Sums> sums(ranges.size());
  for_all(ranges.size(), threads, [&](size_t i) {
    const Range& r = ranges[i];
    const Pair& pair = pairs.both[r.pair];
    const DType a_type = tensor(left, pair.a).dtype, b_type = tensor(right, pair.b).dtype;
    std::vector<std::byte> x(static_cast<size_t>(r.count) * size_of(a_type)), y(static_cast<size_t>(r.count) * size_of(b_type));
    a.read(pair.a, r.first, r.count, x.data());
    b.read(pair.b, r.first, r.count, y.data());
    sums[i] = with_elements(a_type, x.data(), [&](const auto* v) {
      return with_elements(b_type, y.data(), [&](const auto* w) { return compare_range(v, w, r.first, r.count); });
    });
    if (done) done(x.size() + y.size());
  });

  std::vector<Sums> of_pair(pairs.both.size());
  for (size_t i = 0; i < ranges.size(); ++i) of_pair[ranges[i].pair].add(sums[i]);
  CheckpointDifference out;
  for (size_t i = 0; i < of_pair.size(); ++i)
    out.tensors.push_back(finished(tensor(left, pairs.both[i].a), tensor(right, pairs.both[i].b), of_pair[i]));
  for (const int32_t i : pairs.only_a) out.only_a.push_back(tensor(left, i));
  for (const int32_t i : pairs.only_b) out.only_b.push_back(tensor(right, i));
  out.config = config_differences(left.config, right.config);
  out.records = record_differences(left, right);
  return out;
}

}  // namespace hlat
