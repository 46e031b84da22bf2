// Rows of the vocabulary-parallel cross-entropy, of the choice of the largest logit and of reductions: sums, checksums, largest values.
#include <algorithm>
#include <cmath>

#include "ops/conformance.h"

namespace hlat {
namespace {

// Every target a shard can meet: inside, outside on both sides, ignored.
std::vector<int32_t> some_targets(int64_t n, int64_t vocab) {
  std::vector<int32_t> targets;
  for (int64_t i = 0; i < n; ++i)
    targets.push_back(i % 4 == 3 ? (i % 8 == 3 ? -1 : -100) : static_cast<int32_t>((i * 7 + vocab - 1) % vocab));
  return targets;
}

// The maximum and the target logit are copies; the sum is of positive terms, each an exponential of a non-positive number
// (whose argument rounds by at most |x| exp(x) < 1 unit), possibly rescaled once per block.
Tolerance stats_tolerance(const Twin& stats, int64_t vocab) {
  std::vector<double> magnitude = to_f64(stats.ref);
  for (size_t i = 0; i < magnitude.size(); ++i) magnitude[i] = i % 3 == 1 ? std::abs(magnitude[i]) : 0;
  return {.units = sum_units(vocab) + 16, .magnitude = magnitude, .rounded = false};
}

// scale * (p + onehot), with p below 1 and off by its argument: logits further than 104 below the maximum vanish in f32.
Tolerance bwd_tolerance(const Twin& logits, const Twin& stats, const std::vector<int32_t>& targets, int64_t first, double scale) {
  const int64_t vocab = logits.ref.dim(1);
  std::vector<double> magnitude;
  for (int64_t n = 0; n < logits.ref.dim(0); ++n) {
    for (int64_t v = 0; v < vocab; ++v) {
      const int32_t target = targets[static_cast<size_t>(n)];
      const double x = row(logits.ref, n)[v] - row(stats.ref, n)[0];
      const double p = std::exp(x) / row(stats.ref, n)[1] * (1 + std::min(std::abs(x), 104.0));
      magnitude.push_back(target < 0 ? 0 : scale * (p + (target == first + v ? 1 : 0)));
    }
  }
  return {.units = 12, .magnitude = magnitude};
}

// One shard of a vocabulary that begins at `first`.
void cross_entropy(Lab& lab, int64_t n, int64_t vocab, double std, int64_t first, bool alias) {
  const std::vector<int32_t> labels = some_targets(n, first + vocab + 2);
  const double scale = 1.0 / 7;
  const Twin logits = lab.input({n, vocab}, "logits", std), targets = lab.ids(labels), exact = lab.stat({n, 3});
  lab.run([&](Ops& ops, const View& at) { ops.cross_entropy_partial(at(exact), at(logits), at(targets), first); });
  lab.expect("stats", exact, stats_tolerance(exact, vocab));

  const Twin stats = lab.rounded(DType::f32, exact), loss = lab.values(DType::f64, {1}, {0.25});
  lab.run([&](Ops& ops, const View& at) { ops.cross_entropy_finish(at(loss), at(stats), at(targets)); });
  double magnitude = 0.25;
  for (int64_t i = 0; i < n; ++i)
    magnitude += std::abs(std::log(row(stats.ref, i)[1])) + std::abs(row(stats.ref, i)[0]) + std::abs(row(stats.ref, i)[2]);
  lab.expect("loss", loss, {.units = 4, .magnitude = {magnitude}});

  const Tolerance tolerance = bwd_tolerance(logits, stats, labels, first, scale);
  const Twin dlogits = alias ? logits : lab.output({n, vocab});
  lab.run([&](Ops& ops, const View& at) { ops.cross_entropy_bwd(at(dlogits), at(logits), at(stats), at(targets), first, scale); });
  lab.expect("dlogits", dlogits, tolerance);
}

// Shard p of the statistics (P, N, 3).
Twin part_of(const Twin& parts, int64_t p) {
  const auto view = [&](const Tensor& t) { return Tensor::contiguous(t.rows(p, p + 1).data, t.dtype, {t.dim(1), t.dim(2)}); };
  return {view(parts.test), view(parts.ref), view(parts.mag)};
}

// Shards [bounds[i], bounds[i + 1]) of a vocabulary give the statistics, the loss and the gradient of the whole.
void sharded(Lab& lab, int64_t n, const std::vector<int64_t>& bounds, double std, bool alias) {
  const int64_t vocab = bounds.back(), count = static_cast<int64_t>(bounds.size()) - 1;
  const std::vector<int32_t> labels = some_targets(n, vocab);
  const Twin logits = lab.input({n, vocab}, "logits", std), targets = lab.ids(labels), whole = lab.stat({n, 3}),
             dwhole = lab.output({n, vocab}), parts = lab.stat({count, n, 3}), loss = lab.values(DType::f64, {1}, {0});
  lab.run([&](Ops& ops, const View& at) { ops.cross_entropy_partial(at(whole), at(logits), at(targets), 0); });
  std::vector<Twin> shards;
  for (int64_t p = 0; p < count; ++p) {
    const int64_t begin = bounds[static_cast<size_t>(p)];
    const Twin view = logits.cols(begin, bounds[static_cast<size_t>(p) + 1]), stats = part_of(parts, p);
    const Twin& shard = shards.emplace_back(lab.values(view.ref.shape, to_f64(view.ref)));
    lab.run([&](Ops& ops, const View& at) { ops.cross_entropy_partial(at(stats), at(shard), at(targets), begin); });
  }
  const Twin merged = alias ? part_of(parts, 0) : lab.stat({n, 3});
  lab.run([&](Ops& ops, const View& at) {
    ops.cross_entropy_merge(at(merged), at(parts));
    ops.cross_entropy_finish(at(loss), at(merged), at(targets));
  });
  lab.expect("merged stats", merged, stats_tolerance(merged, vocab));
  from_f64(merged.ref, to_f64(whole.ref));
  lab.expect("merged stats and those of the whole", merged, stats_tolerance(whole, vocab));
  if (count == 1) {
    from_f64(merged.ref, to_f64(whole.test));
    lab.expect("one shard, copied", merged, {.rounded = false});
  }
  // An error of the sum is one of its logarithm.
  lab.expect("loss", loss, {.units = sum_units(vocab) + 16, .magnitude = {static_cast<double>(n)}});

  const Twin stats = lab.rounded(DType::f32, whole);
  lab.run([&](Ops& ops, const View& at) { ops.cross_entropy_bwd(at(dwhole), at(logits), at(stats), at(targets), 0, 1.0); });
  for (size_t i = 0; i < shards.size(); ++i) {
    const Twin dshard = lab.output(shards[i].ref.shape);
    lab.run([&](Ops& ops, const View& at) { ops.cross_entropy_bwd(at(dshard), at(shards[i]), at(stats), at(targets), bounds[i], 1.0); });
    from_f64(dshard.ref, to_f64(columns(dwhole.ref, bounds[i], bounds[i + 1])));
    lab.expect("dlogits of a shard", dshard, bwd_tolerance(shards[i], stats, labels, bounds[i], 1.0));
  }
}

// The result is f64; partial sums may be f32 over short runs.
void sum_squares(Lab& lab, const Shape& shape) {
  const Twin x = lab.input(shape, "x"), out = lab.output(DType::f64, {1});
  lab.run([&](Ops& ops, const View& at) { ops.sum_squares(at(out), at(x)); });
  lab.expect("out", out, {.units = 64});
}

void sum(Lab& lab, int64_t n) {
  const Twin x = lab.values(DType::f64, {n}, normals(n, "x")), out = lab.output(DType::f64, {1});
  lab.run([&](Ops& ops, const View& at) { ops.sum(at(out), at(x)); });
  lab.expect("out", out, {.rounded = false});  // the order is given
}

// Of narrower types: nothing but the order of f64 additions may differ.
void sum_wide(Lab& lab, int64_t n) {
  const Twin x = lab.input({n}, "x"), out = lab.output(DType::f64, {1});
  double magnitude = 0;
  for (const double v : to_f64(x.mag)) magnitude += v;
  lab.run([&](Ops& ops, const View& at) { ops.sum(at(out), at(x)); });
  lab.expect("out", out, {.units = static_cast<double>(n) * 0x1p-29, .magnitude = {magnitude}, .rounded = false});
}

// Of the same bits on both sides.
void checksum(Lab& lab, const Shape& shape) {
  const Tensor bits = lab.input(shape, "x").test;
  const Twin x{bits, bits, bits}, out = lab.output_ids(2);
  lab.run([&](Ops& ops, const View& at) { ops.checksum(at(out), at(x)); });
  lab.expect("out", out, {.rounded = false});
}

// Exact: nothing is computed. It starts below or above what is there.
void largest(Lab& lab, const Shape& shape, bool absolute, double start) {
  const Twin x = lab.input(shape, "x"), out = lab.values(DType::f64, {1}, {start});
  lab.run([&](Ops& ops, const View& at) { ops.largest(at(out), at(x), absolute); });
  lab.expect("out", out, {.rounded = false});
}

// A call takes tokens from the middle of the batch; rows go to lines that several of them share, and some targets are ignored.
void add_losses(Lab& lab, int64_t rows, int64_t seq, int64_t parts, int64_t first, int64_t n) {
  std::vector<int32_t> targets = some_targets(n, 100), lines;
  for (int64_t r = 0; r < rows; ++r) lines.push_back(static_cast<int32_t>(r * 2 % 3));
  std::vector<double> values = normals(3 * n, "stats");
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(3 * i + 1)] = 1 + std::abs(values[static_cast<size_t>(3 * i + 1)]);
  const Twin stats = lab.values(DType::f32, {n, 3}, values), table = lab.values(DType::f64, {3, parts}, normals(3 * parts, "table"));
  const Twin targets_of = lab.ids(targets), groups = lab.ids(lines);
  lab.run([&](Ops& ops, const View& at) { ops.add_losses(at(table), at(stats), at(targets_of), at(groups), first, seq); });
  // f64 sums of numbers near 1, in another order.
  lab.expect("table", table,
             {.units = static_cast<double>(n) * 0x1p-20, .magnitude = std::vector<double>(static_cast<size_t>(3 * parts), 4.0)});
}

// Of numbers as they are and of coarse ones, which are often equal.
void argmax(Lab& lab, int64_t n, int64_t vocab, int64_t first, bool coarse) {
  std::vector<double> values = normals(n * vocab, "logits");
  for (double& v : values) v = coarse ? std::round(v) : v;
  const Twin logits = lab.values({n, vocab}, values), ids = lab.output_ids(n), largest = lab.stat({n});
  lab.run([&](Ops& ops, const View& at) { ops.argmax(at(ids), at(largest), at(logits), first); });
  lab.expect("ids", ids, {.rounded = false});
  lab.expect("values", largest, {.rounded = false});
}

// The whole vocabulary in one go, from the logits to their gradient.
void cross_entropy_whole(Lab& lab, int64_t n, int64_t vocab, double std) {
  const std::vector<int32_t> labels = some_targets(n, vocab);
  const double scale = 1.0 / 7;
  const Twin logits = lab.input({n, vocab}, "logits", std), targets = lab.ids(labels), stats = lab.stat({n, 3});
  const Twin kept = lab.rounded(lab.dtype(), logits), loss = lab.values(DType::f64, {1}, {0.25});
  lab.run([&](Ops& ops, const View& at) { ops.cross_entropy_whole(at(loss), at(logits), at(stats), at(targets), scale); });
  lab.expect("stats", stats, stats_tolerance(stats, vocab));
  double magnitude = 0.25;
  for (int64_t i = 0; i < n; ++i)
    magnitude += 1 + std::abs(std::log(row(stats.ref, i)[1])) + std::abs(row(stats.ref, i)[0]) + std::abs(row(stats.ref, i)[2]);
  lab.expect("loss", loss, {.units = sum_units(vocab) + 16, .magnitude = {magnitude}});
  Tolerance tolerance = bwd_tolerance(kept, stats, labels, 0, scale);
  tolerance.units += sum_units(vocab) + 16;  // the factor is one over the sum
  lab.expect("dlogits", logits, tolerance);
}
}  // namespace

void add_loss_rows(Table& table) {
  struct Size {
    int64_t n, vocab;
  };
  for (const Size s : {Size{1, 1}, Size{1, 7}, Size{9, 7}, Size{33, 1000}, Size{4, 4099}, Size{3, 32000}}) {
    for (const double std : {1.0, 30.0, 3000.0}) {
      for (const int64_t first : {int64_t{0}, int64_t{5}}) {
        for (const bool alias : {false, true})
          table.push_back({"cross_entropy", fmt::format("n{} v{} std {} first {}{}", s.n, s.vocab, std, first, alias ? " alias" : ""),
                           [=](Lab& lab) { cross_entropy(lab, s.n, s.vocab, std, first, alias); }});
      }
    }
    for (const bool coarse : {false, true})
      for (const int64_t first : {int64_t{0}, int64_t{1000}})
        table.push_back({"argmax", fmt::format("n{} v{} first {}{}", s.n, s.vocab, first, coarse ? " coarse" : ""),
                         [=](Lab& lab) { argmax(lab, s.n, s.vocab, first, coarse); }});
    for (const double std : {1.0, 30.0})
      table.push_back({"cross_entropy_whole", fmt::format("n{} v{} std {}", s.n, s.vocab, std),
                       [=](Lab& lab) { cross_entropy_whole(lab, s.n, s.vocab, std); }});
  }
  for (const auto& bounds : {std::vector<int64_t>{0, 7}, std::vector<int64_t>{0, 3, 4, 7}, std::vector<int64_t>{0, 500, 1000},
                             std::vector<int64_t>{0, 1, 300, 301, 999, 1000}})
    for (const double std : {1.0, 1000.0})
      for (const bool alias : {false, true})
        table.push_back({"cross_entropy_merge",
                         fmt::format("{} shards of {} std {}{}", bounds.size() - 1, bounds.back(), std, alias ? " alias" : ""),
                         [=](Lab& lab) { sharded(lab, 9, bounds, std, alias); }});
  for (const int64_t n : {1, 2, 1000}) table.push_back({"sum", fmt::format("f64 {}", n), [n](Lab& lab) { sum(lab, n); }});
  for (const int64_t n : {1, 2, 17, 1000, 70001}) table.push_back({"sum", fmt::format("{}", n), [n](Lab& lab) { sum_wide(lab, n); }});
  for (const Shape& shape : {Shape{1}, Shape{2}, Shape{3}, Shape{5, 7}, Shape{1000}, Shape{70001}, Shape{3, 7, 11, 13}})
    table.push_back({"checksum", shape.str(), [shape](Lab& lab) { checksum(lab, shape); }});
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{33, 5}, Shape{70001}, Shape{4, 8, 100}})
    for (const bool absolute : {false, true})
      for (const double start : {-1e30, 100.0})
        table.push_back({"largest", fmt::format("{}{} from {}", shape.str(), absolute ? " absolute" : "", start),
                         [=](Lab& lab) { largest(lab, shape, absolute, start); }});
  struct Stretch {
    int64_t rows, seq, parts, first, n;
  };
  for (const Stretch s : {Stretch{1, 1, 1, 0, 1}, Stretch{3, 7, 2, 0, 21}, Stretch{5, 23, 16, 20, 50}, Stretch{4, 300, 300, 299, 602},
                          Stretch{2, 2048, 16, 1024, 2000}})
    table.push_back({"add_losses", fmt::format("{} rows of {} in {}, {} from {}", s.rows, s.seq, s.parts, s.n, s.first),
                     [=](Lab& lab) { add_losses(lab, s.rows, s.seq, s.parts, s.first, s.n); }});
  for (const Shape& shape : {Shape{1}, Shape{17}, Shape{3, 1000}, Shape{70001}})
    table.push_back({"sum_squares", shape.str(), [shape](Lab& lab) { sum_squares(lab, shape); }});
}

}  // namespace hlat
