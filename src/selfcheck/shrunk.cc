#include "selfcheck/shrunk.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/fp8.h"
#include "config/linear_shapes.h"
#include "model/llama.h"
#include "parallel/partition.h"
#include "plan/micro_batch.h"

namespace hlat {

namespace {

constexpr int64_t kSmallModel = 1 << 21;  // parameters
constexpr int64_t kSmallStep = 1 << 12;   // tokens
constexpr int64_t kMostHidden = 256, kLeastHidden = 64;
constexpr int64_t kVocab = 256;

// Of attention: more than two tiles, which have 64 tokens on the CPU and up to 128 on a GPU. A mask or a sum may be wrong from the second
// or third tile on.
constexpr int64_t kTokens = 160, kGpuTokens = 288;

// Parameters with the run's own size of a head, and those of all replicas: the gradients of each are held against those of one rank.
constexpr int64_t kWideModel = 1 << 23, kGpuWideModel = 1 << 25, kWideReplicas = 1 << 27;

// About `about`, with the remainder that n leaves when it is divided by `unit`; never more than n.
int64_t shrunk_size(int64_t n, int64_t unit, int64_t about) {
  if (n <= about) return n;
  return std::min(n, (about + unit - 1) / unit * unit + n % unit);
}

// One layer for each pipeline piece, two for those that have more layers than the smallest.
void shrink_layers(Config& c) {
  const ParallelConfig& p = c.parallel;
  if (p.pieces() == 1) {
    c.model.layers = std::min(c.model.layers, std::max<int64_t>(2, c.train.recompute.every + 1));
    return;
  }
  const std::vector<Part> pieces = partition_layers(c.model.layers, static_cast<int>(p.pp), static_cast<int>(p.chunks), p.cuts);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Part& piece : pieces) least = std::min(least, piece.count);
  std::vector<int64_t> first;
  int64_t layers = 0;
  for (const Part& piece : pieces) first.push_back(layers), layers += piece.count > least ? 2 : 1;
  c.model.layers = layers;
  if (!p.cuts.empty()) c.parallel.cuts.assign(first.begin() + 1, first.end());
}

// The least size of a head: even, since its halves turn as pairs, and a multiple of 8 where the run's is, since vectors are whole then and
// a GPU has the run's kernels of attention for them.
// Products of FP8 take multiples of 16 alone.
int64_t least_head(int64_t head_dim, int64_t heads, bool fp8) {
  int64_t e = head_dim % 16 == 0 ? 16 : head_dim % 8 == 0 ? 8 : 8 + head_dim % 8;
  if (e * heads < kLeastHidden && head_dim % 32 == 0) e = 32;
  e = std::min(e, head_dim);
  while (e * heads > kMostHidden && e % 16 == 0 && !(fp8 && e % 32 != 0)) e /= 2;
  return e;
}

// Which linear layers have FP8 products, where the policy has any.
std::array<bool, 4> fp8_layers(const Config& c) {
  std::array<bool, 4> fits{};
  const auto shapes = linear_shapes(c.model);
  for (size_t i = 0; i < fits.size(); ++i) fits[i] = precision_of(c).fp8 && fp8_fits(shapes[i].outputs, shapes[i].inputs);
  return fits;
}

void set_heads(ModelConfig& m, const ModelConfig& given, int64_t kv, int64_t head_dim) {
  m.heads = kv * (given.heads / given.kv());
  m.kv_heads = given.kv_heads != 0 ? kv : 0;
  m.hidden = m.heads * head_dim;
  m.init_std = given.init_std * std::sqrt(static_cast<double>(given.hidden) / static_cast<double>(m.hidden));
}

// GPUs have kernels for sizes such as 64 and 128 alone, so the run's own is kept, else the largest known size below it, where that is
// affordable. `m` has its layers and heads.
int64_t shrunk_head(const Config& c, const ModelConfig& m, int64_t head_dim, bool gpu) {
  const bool whole = head_dim % 16 == 0, fp8 = precision_of(c).fp8;
  for (const int64_t e : {head_dim, int64_t{128}, int64_t{64}, int64_t{32}}) {
    if (e > head_dim || (!whole && (e < head_dim || fp8))) continue;
    ModelConfig wide = m;
    wide.hidden = m.heads * e;
    wide.ffn = std::min(m.ffn, kMostHidden);
    wide.vocab = std::min(m.vocab, kVocab);
    const int64_t parameters = parameter_count(wide);
    if (parameters <= (gpu ? kGpuWideModel : kWideModel) && parameters * c.parallel.dp <= kWideReplicas) return e;
  }
  return least_head(head_dim, m.heads, fp8);
}

// Whether a tensor-parallel rank has a shard that FP8 products cannot take.
bool cuts_fp8(const Config& c) {
  if (!precision_of(c).fp8) return false;
  return std::ranges::any_of(std::array{LinearPlace::qkv, LinearPlace::output, LinearPlace::gate_up, LinearPlace::down},
                             [&](LinearPlace p) { return fp8_cut(c.model, p, static_cast<int>(c.parallel.tp)).has_value(); });
}

// Heads of a size that 16 does not divide: it takes several until their columns are a multiple of 16 as those of the given model are, on
// every tp rank.
void shrink_heads(Config& c, bool gpu) {
  const ModelConfig given = c.model;
  const std::array<bool, 4> fp8 = fp8_layers(c);
  const int64_t tp = c.parallel.tp;
  int64_t kv = given.kv() <= tp ? given.kv() : tp * std::min<int64_t>(given.kv() / tp, 2) + given.kv() % tp;
  ModelConfig fewer = given;
  set_heads(fewer, given, kv, given.head_dim());
  const int64_t head_dim = shrunk_head(c, fewer, given.head_dim(), gpu);
  set_heads(c.model, given, kv, head_dim);
  while (kv < given.kv() && (fp8_layers(c) != fp8 || cuts_fp8(c))) set_heads(c.model, given, kv += tp, head_dim);
}

void shrink_batch(Config& c, bool gpu) {
  TrainConfig& t = c.train;
  const int64_t dp = c.parallel.dp, tokens = t.micro_batch * t.seq_len;
  const int64_t micros = std::min(t.global_batch / (t.micro_batch * dp), c.parallel.pp + 1);
  const int64_t grain = precision_of(c).fp8 ? kFp8Grain : 1, rows = t.micro_batch;
  t.seq_len = shrunk_size(t.seq_len, c.parallel.tp * grain, gpu ? kGpuTokens : kTokens);
  t.micro_batch = std::min<int64_t>(rows, 2);
  while (t.micro_batch < rows && t.micro_batch * t.seq_len % grain != 0) ++t.micro_batch;
  t.global_batch = t.micro_batch * dp * micros;
  if (t.loss_chunk < tokens) t.loss_chunk = t.micro_batch * t.seq_len / 3 + 1;
}

}  // namespace

bool is_small(const Config& given) {
  return parameter_count(given.model) <= kSmallModel && given.train.global_batch * given.train.seq_len <= kSmallStep;
}

Config shrunk(const Config& given, bool gpu) {
  Config c = given;
  c.train.micro_batch = smallest_micro_batch(c);
  // Nothing of the loop around a step takes part.
  c.train.steps = 100;
  c.train.tokens = 0;
  c.train.epochs = 0;
  c.eval = {};
  c.checkpoint = {};
  c.monitor.every = 0;
  c.parallel.health_every = 0;
  c.parallel.bucket_mb = 1;
  c.model.preset.clear();
  if (is_small(c)) return c;
  shrink_layers(c);
  shrink_heads(c, gpu);
  const int64_t unit = (precision_of(c).fp8 ? kFp8Grain : 8) * c.parallel.tp;
  c.model.ffn = shrunk_size(c.model.ffn, unit, std::min(c.model.hidden, kMostHidden));
  c.model.vocab = shrunk_size(c.model.vocab, unit, kVocab);
  shrink_batch(c, gpu);
  HLAT_CHECK(fp8_layers(c) == fp8_layers(given), "hidden {}, heads {}, kv heads {}, ffn {}: other FP8 products than those of the model",
             c.model.hidden, c.model.heads, c.model.kv(), c.model.ffn);
  return c;
}

}  // namespace hlat
