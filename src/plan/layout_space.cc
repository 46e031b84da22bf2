#include "plan/layout_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "config/validate.h"
#include "parallel/partition.h"

namespace hlat {

namespace {

constexpr int64_t kMostChunks = 8;  // more make messages of next to nothing

std::vector<int64_t> divisors(int64_t n, int64_t most) {
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

bool allowed(const Config& c) {
  return c.parallel.dp >= 1 && c.train.global_batch % (c.train.micro_batch * c.parallel.dp) == 0 && validate(c).empty();
}

std::vector<Recompute> recomputes() {
  std::vector<Recompute> out;
  for (const char* text : {"none", "every:4", "selective", "every:2", "full"})
    HLAT_CHECK(parse_recompute(text, out.emplace_back()), "{}", text);
  return out;
}

std::vector<int64_t> micro_batches(const Config& c) {
  std::vector<int64_t> out;
  const int64_t share = c.train.global_batch / c.parallel.dp;
  for (int64_t m = 1; m <= share && m <= 64; ++m)
    if (share % m == 0 && (share % 3 == 0 || std::has_single_bit(static_cast<uint64_t>(m)))) out.push_back(m);
  return out;
}

// Layers move from the stage with the head, or with the embedding, to the others: one layer costs less than the head of a large
// vocabulary. The even split, with `last` layers fewer at the end and `first` fewer at the beginning.
std::vector<int64_t> uneven_cuts(const Config& c, int64_t first, int64_t last) {
  const auto pieces = static_cast<int64_t>(c.parallel.pieces());
  const int64_t layers = c.model.layers, per = (layers + first + last) / pieces;
  std::vector<int64_t> counts(static_cast<size_t>(pieces), per);
  for (int64_t i = 0; i < (layers + first + last) % pieces; ++i)
    ++counts[static_cast<size_t>(1 + i % std::max<int64_t>(1, pieces - 2)) % counts.size()];
  counts.front() -= first;
  counts.back() -= last;
  std::vector<int64_t> cuts;
  int64_t at = 0;
  for (size_t i = 0; i + 1 < counts.size(); ++i) cuts.push_back(at += counts[i]);
  const bool possible = std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n >= 1; });
  return possible ? cuts : std::vector<int64_t>{};
}

// As the even split has them.
std::vector<int64_t> even_cuts(const Config& c) {
  std::vector<int64_t> cuts;
  for (const Part& p : partition_layers(c.model.layers, static_cast<int>(c.parallel.pp), static_cast<int>(c.parallel.chunks), {}))
    if (p.begin > 0) cuts.push_back(p.begin);
  return cuts;
}

class Neighbours {
 public:
  Neighbours(const Config& config, const SpaceLimits& limits) : from_(config), limits_(limits) {}

  std::vector<LayoutChange> all() {
    splits();
    passes();
    switches();
    cuts();
    return std::move(out_);
  }

 private:
  // The split of the ranks follows from tp and pp; cuts belong to the old number of stages.
  void split(const std::string& words, int64_t tp, int64_t pp) {
    if (tp < 1 || pp < 1 || limits_.ranks % (tp * pp) != 0 || tp > limits_.most_tp) return;
    Config c = from_;
    c.parallel.tp = tp;
    c.parallel.pp = pp;
    c.parallel.dp = limits_.ranks / (tp * pp);
    c.parallel.cuts.clear();
    if (pp == 1) c.parallel.chunks = 1;
    c.parallel.sequence = tp > 1 && (c.parallel.sequence || from_.parallel.tp == 1);
    add(words, c);
  }

  void splits() {
    const ParallelConfig& p = from_.parallel;
    for (const int64_t tp : {p.tp * 2, p.tp / 2}) split(fmt::format("tp {}", tp), tp, p.pp);
    for (const int64_t pp : {p.pp * 2, p.pp / 2}) split(fmt::format("pp {}", pp), p.tp, pp);
    split(fmt::format("tp {} x pp {}", p.tp * 2, p.pp / 2), p.tp * 2, p.pp / 2);
    split(fmt::format("tp {} x pp {}", p.tp / 2, p.pp * 2), p.tp / 2, p.pp * 2);
  }

  void passes() {
    for (const int64_t micro : {from_.train.micro_batch * 2, from_.train.micro_batch / 2}) {
      if (micro < 1) continue;
      Config c = from_;
      c.train.micro_batch = micro;
      add(fmt::format("micro-batch {}", micro), c);
    }
    for (const Recompute& r : recomputes()) {
      Config c = from_;
      c.train.recompute = r;
      add("recompute " + r.str(), c);
    }
    for (const int64_t chunks : {from_.parallel.chunks + 1, from_.parallel.chunks - 1, from_.parallel.chunks * 2}) {
      if (chunks < 1 || chunks > kMostChunks || (chunks > 1 && from_.parallel.pp == 1) || chunks * from_.parallel.pp > from_.model.layers)
        continue;
      Config c = from_;
      c.parallel.chunks = chunks;
      c.parallel.cuts.clear();
      add(fmt::format("chunks {}", chunks), c);
    }
  }

  void switches() {
    if (from_.parallel.tp > 1) {
      Config c = from_;
      c.parallel.sequence = !c.parallel.sequence;
      add(c.parallel.sequence ? "sequence on" : "sequence off", c);
    }
    if (from_.parallel.dp > 1) {
      Config c = from_;
      c.parallel.zero1 = !c.parallel.zero1;
      add(c.parallel.zero1 ? "zero1 on" : "zero1 off", c);
    }
    for (const int64_t chunk : {from_.train.loss_chunk * 4, from_.train.loss_chunk / 4}) {
      if (chunk < 256 || chunk > from_.train.micro_batch * from_.train.seq_len) continue;
      Config c = from_;
      c.train.loss_chunk = chunk;
      add(fmt::format("loss chunk {}", chunk), c);
    }
    for (const PrecisionKind p : limits_.precisions) {
      Config c = from_;
      c.train.precision = p;
      add(fmt::format("precision {}", name_of(p)), c);
    }
  }

  void cuts() {
    if (from_.parallel.pp == 1) return;
    Config even = from_;
    even.parallel.cuts.clear();
    add("even cuts", even);
    for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 1}, {1, 1}, {0, 2}, {1, 2}, {2, 2}}) {
      Config c = from_;
      c.parallel.cuts = uneven_cuts(c, first, last);
      if (!c.parallel.cuts.empty() && c.parallel.cuts != even_cuts(c)) add(fmt::format("cuts {}", fmt::join(c.parallel.cuts, ",")), c);
    }
  }

  void add(const std::string& words, const Config& c) {
    if (c == from_ || !allowed(c)) return;
    const bool known = std::any_of(out_.begin(), out_.end(), [&](const LayoutChange& o) { return o.config == c; });
    if (!known) out_.push_back({words, c});
  }

  const Config& from_;
  const SpaceLimits& limits_;
  std::vector<LayoutChange> out_;
};

}  // namespace

std::vector<LayoutFamily> layout_families(const Config& config, const SpaceLimits& limits) {
  std::vector<LayoutFamily> out;
  std::vector<PrecisionKind> precisions = limits.precisions;
  if (precisions.empty()) precisions = {config.train.precision};
  for (const int64_t tp : divisors(limits.ranks, std::min(limits.most_tp, config.model.heads)))
    for (const int64_t pp : divisors(limits.ranks / tp, config.model.layers))
      for (const int64_t chunks : {1, 2})
        for (const PrecisionKind precision : precisions) {
          if (chunks > 1 && (pp == 1 || pp * chunks > config.model.layers)) continue;
          LayoutFamily f{.config = config, .micro_batches = {}, .recomputes = recomputes()};
          ParallelConfig& p = f.config.parallel;
          p.tp = tp, p.pp = pp, p.dp = limits.ranks / (tp * pp), p.chunks = chunks;
          p.sequence = tp > 1;
          p.zero1 = true;
          p.cuts.clear();
          f.config.train.precision = precision;
          for (const int64_t micro : micro_batches(f.config)) {
            f.config.train.micro_batch = micro;
            if (allowed(f.config)) f.micro_batches.push_back(micro);
          }
          if (f.micro_batches.empty()) continue;
          f.config.train.micro_batch = f.micro_batches.front();
          out.push_back(std::move(f));
        }
  return out;
}

std::vector<LayoutChange> neighbours(const Config& config, const SpaceLimits& limits) { return Neighbours(config, limits).all(); }

std::string layout_words(const Config& c) {
  const ParallelConfig& p = c.parallel;
  std::string out =
      fmt::format("tp {} x pp {} x dp {}, micro-batch {}, recompute {}", p.tp, p.pp, p.dp, c.train.micro_batch, c.train.recompute.str());
  if (p.chunks > 1) out += fmt::format(", chunks {}", p.chunks);
  if (p.tp > 1) out += p.sequence ? ", sequence" : ", no sequence";
  if (p.dp > 1) out += p.zero1 ? ", zero1" : ", no zero1";
  if (!p.cuts.empty()) out += fmt::format(", cuts {}", fmt::join(p.cuts, ","));
  return out;
}

std::vector<std::string> layout_keys(const Config& c) {
  const ParallelConfig& p = c.parallel;
  return {fmt::format("parallel.tp={}", p.tp),
          fmt::format("parallel.pp={}", p.pp),
          fmt::format("parallel.dp={}", p.dp),
          fmt::format("parallel.chunks={}", p.chunks),
          fmt::format("parallel.cuts=[{}]", fmt::join(p.cuts, ",")),
          fmt::format("parallel.sequence={}", p.sequence),
          fmt::format("parallel.zero1={}", p.zero1),
          fmt::format("train.micro_batch={}", c.train.micro_batch),
          fmt::format("train.recompute={}", c.train.recompute.str()),
          fmt::format("train.loss_chunk={}", c.train.loss_chunk),
          fmt::format("train.precision={}", name_of(c.train.precision))};
}

}  // namespace hlat
