#include "model/kv_passes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/attention_shared.h"
#include "ops/download.h"

namespace hlat {

namespace {

constexpr int64_t kReplayed = 8;  // queries of a segment up to which a pass is worth a recording: longer ones hide the launches

// Few distinct sizes, so that kernels are chosen and recorded once: powers of two, then multiples that waste little.
int64_t rounded(int64_t n, int64_t limit) {
  const int64_t step = n <= 64 ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1)))) : n <= 512 ? 64 : 512;
  return std::min((n + step - 1) / step * step, limit);
}

Tensor host_tensor(std::vector<float>& values) {
  return Tensor::contiguous(values.data(), DType::f32, {static_cast<int64_t>(values.size())});
}

}  // namespace

int32_t TokenPass::add(std::span<const int32_t> tokens, int64_t begin, std::span<const Run> runs) {
  HLAT_CHECK(!tokens.empty() && !runs.empty() && runs.size() <= kKeyRuns, "{} tokens, {} runs", tokens.size(), runs.size());
  const auto first = static_cast<int32_t>(ids.size()), count = static_cast<int32_t>(tokens.size());
  KvSegment s{.first = first, .count = count, .keys = static_cast<int32_t>(begin) + count};
  HLAT_CHECK(runs.back().end >= s.keys, "runs end at {}, tokens at {}", runs.back().end, s.keys);
  for (size_t r = 0; r < kKeyRuns; ++r) {
    const Run& run = runs[std::min(r, runs.size() - 1)];
    s.run_slot[r] = run.slot;
    s.run_end[r] = run.end;
  }
  segments.push_back(s);
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  size_t r = 0;
  for (auto p = static_cast<int32_t>(begin); p < s.keys; ++p) {
    while (p >= runs[r].end) ++r;
    positions.push_back(p);
    slots.push_back(runs[r].slot + p - (r > 0 ? runs[r - 1].end : 0));
  }
  return first;
}

KvLimits kv_limits(const Config& config) {
  const int64_t tokens = config.train.micro_batch * config.train.seq_len, length = config.train.seq_len;
  constexpr int64_t kLogitRows = 64;
  return {.slots = std::max(config.eval.cache_tokens > 0 ? config.eval.cache_tokens : tokens + length, length),
          .tokens = tokens,
          .segments = std::min(std::max(kFewTokens, config.train.micro_batch), tokens),
          .asked = tokens,
          .length = length,
          .logit_rows = std::min(kLogitRows, tokens)};
}

KvPasses::KvPasses(Executor& executor, const KvLimits& limits) : executor_(executor), limits_(limits) {
  const Config& config = executor.config();
  const Mesh& mesh = executor.mesh();
  HLAT_CHECK(limits.tokens <= config.train.micro_batch * config.train.seq_len && limits.length <= config.train.seq_len,
             "passes of {} tokens, texts of {}", limits.tokens, limits.length);
  HLAT_CHECK(limits.length <= limits.slots, "a text of {} tokens in {} slots", limits.length, limits.slots);
  kv_.shape = {.heads = mesh.heads().q.count, .kv_heads = mesh.heads().kv.count, .head_dim = config.model.head_dim()};
  kv_.layers.resize(static_cast<size_t>(config.model.layers));
  const DType act = executor.params().precision().compute;
  bool last = false;
  for (const Llama::Chunk& chunk : executor.chunks()) {
    last = last || chunk.last;
    for (int64_t layer = chunk.layers.begin; layer < chunk.layers.begin + chunk.layers.count; ++layer)  // one more slot, for padding
      kv_.layers[static_cast<size_t>(layer)] = executor.memory()[Purpose::saved].alloc(act, {limits.slots + 1, kv_.shape.cache_width()},
                                                                                       fmt::format("block {} {}", layer, kKeysAndValues));
  }
  Region& io = executor.memory()[Purpose::io];
  words_ = io.alloc(DType::i32, {3 * limits.tokens + 2 * limits.asked + limits.segments * kKvSegment}, "tokens of a pass");
  if (!last) return;
  const int64_t vocab = part_of(config.model.vocab, mesh.coord().tp, mesh.shape().tp).count;
  stats_ = io.alloc(executor.stat(), {limits.asked, 3}, "scores of a pass");
  best_ = io.alloc(DType::i32, {limits.asked}, "likeliest tokens");
  best_logit_ = io.alloc(executor.stat(), {limits.asked}, "their logits");
  if (limits.logit_rows > 0) logits_ = io.alloc(act, {limits.logit_rows, vocab}, "logits for the host");
}

// The parts of `words_` for a pass of this shape, one after the other.
KvPasses::Words KvPasses::words(const Shape& s) const {
  int64_t at = 0;
  const auto next = [&](int64_t n) {
    at += n;
    return words_.rows(at - n, at);
  };
  return {.ids = next(s.tokens),
          .positions = next(s.tokens),
          .slots = next(s.tokens),
          .asked = next(s.asked),
          .targets = next(s.asked),
          .segments = next(s.segments * kKvSegment).viewed({s.segments, kKvSegment})};
}

KvPasses::Shape KvPasses::shape_of(const TokenPass& pass, Answer answer) const {
  const auto asked = static_cast<int64_t>(pass.asked.size()), segments = static_cast<int64_t>(pass.segments.size());
  HLAT_CHECK(pass.tokens() > 0 && pass.tokens() <= limits_.tokens && segments <= limits_.segments && asked <= limits_.asked,
             "a pass of {} tokens, {} segments, {} asked; reserved are {}, {}, {}", pass.tokens(), segments, asked, limits_.tokens,
             limits_.segments, limits_.asked);
  HLAT_CHECK(answer != Answer::logits || asked <= limits_.logit_rows, "logits of {} rows, reserved are {}", asked, limits_.logit_rows);
  Shape s{.tokens = rounded(pass.tokens(), limits_.tokens), .segments = rounded(segments, limits_.segments), .answer = answer};
  if (answer != Answer::none) s.asked = rounded(asked, answer == Answer::logits ? limits_.logit_rows : limits_.asked);
  for (const KvSegment& segment : pass.segments) {
    s.max_queries = std::max<int64_t>(s.max_queries, segment.count);
    s.max_keys = std::max<int64_t>(s.max_keys, segment.keys);
  }
  constexpr int64_t kKeyStep = 256;
  s.max_queries = rounded(s.max_queries, limits_.tokens);
  s.max_keys = std::max(std::min((s.max_keys + kKeyStep - 1) / kKeyStep * kKeyStep, limits_.length), s.max_queries);
  return s;
}

// Padding: tokens of no segment whose keys go to the last slot, segments without tokens, row 0 asked for once more.
void KvPasses::place(const TokenPass& pass, std::span<const int32_t> targets, const Shape& s) {
  std::vector<int32_t> host;
  host.reserve(static_cast<size_t>(3 * s.tokens + 2 * s.asked + s.segments * kKvSegment));
  const auto put = [&](std::span<const int32_t> values, int64_t count, int32_t padding) {
    const size_t begin = host.size();
    host.insert(host.end(), values.begin(), values.end());
    host.resize(begin + static_cast<size_t>(count), padding);
  };
  put(pass.ids, s.tokens, 0);
  put(pass.positions, s.tokens, 0);
  put(pass.slots, s.tokens, static_cast<int32_t>(limits_.slots));
  put(s.asked > 0 ? std::span<const int32_t>(pass.asked) : std::span<const int32_t>(), s.asked, 0);
  put(targets, s.asked, 0);
  put({reinterpret_cast<const int32_t*>(pass.segments.data()), pass.segments.size() * kKvSegment}, s.segments * kKvSegment, 0);
  executor_.device().upload(words_.rows(0, static_cast<int64_t>(host.size())), host.data());
}

void KvPasses::compute(const Shape& s) {
  const Words w = words(s);
  kv_.positions = w.positions;
  kv_.slots = w.slots;
  kv_.segments = w.segments;
  kv_.shape.max_queries = s.max_queries;
  kv_.shape.max_keys = s.max_keys;
  executor_.forward_cached(w.ids, kv_, [&](Ctx& ctx, const Head& head, Tensor out) {
    if (s.answer == Answer::none) return;
    head.each_logits(ctx, out, w.asked, [&](int64_t first, Tensor logits) {
      const int64_t end = first + logits.dim(0);
      switch (s.answer) {
        case Answer::none: return;
        case Answer::scores: return head.statistics(ctx, stats_.rows(first, end), logits, w.targets.rows(first, end));
        case Answer::likeliest: return ctx.ops.argmax(best_.rows(first, end), best_logit_.rows(first, end), logits, head.first);
        case Answer::logits: return ctx.ops.cast(logits_.rows(first, end), logits);
      }
    });
  });
}

void KvPasses::run(const TokenPass& pass, std::span<const int32_t> targets, const Shape& s) {
  HLAT_CHECK(s.answer != Answer::scores || targets.size() == pass.asked.size(), "{} targets for {} rows", targets.size(),
             pass.asked.size());
  place(pass, targets, s);
  kv_.shape.pairs = 0;
  for (const KvSegment& g : pass.segments) kv_.shape.pairs += static_cast<double>(g.count) * (g.keys - 0.5 * (g.count - 1));
  const Mesh& mesh = executor_.mesh();
  const bool single = mesh.shape().tp * mesh.shape().pp == 1 && executor_.chunks().size() == 1;
  if (!executor_.config().device.graphs || !records_ || !single || executor_.ops().timing() || s.max_queries > kReplayed) return compute(s);
  constexpr size_t kMostReplays = 64;  // what a recording takes of the device is not planned
  if (replays_.size() >= kMostReplays && !replays_.contains(s)) replays_.clear();
  Replay& replay = replays_[s];
  if (replay.met++ == 0) return compute(s);  // kernels are chosen
  if (replay.met == 2) replay.recording = executor_.device().record([&] { compute(s); });
  if (replay.recording != nullptr) return replay.recording->run();
  records_ = false;  // the training, whose recordings are worth more, keeps the memory
  replays_.clear();
  compute(s);
}

// All ranks of the last stage have what they give; the others' is replaced by it.
std::vector<float> KvPasses::from_last_stage(std::vector<float> values) const {
  const Mesh& mesh = executor_.mesh();
  if (mesh.shape().pp > 1) mesh.along(Axis::pp).host().broadcast(host_tensor(values), mesh.shape().pp - 1);
  mesh.check();  // a group that gave up lets the device go, with any values
  return values;
}

std::vector<TargetScore> KvPasses::score(const TokenPass& pass, std::span<const int32_t> targets) {
  run(pass, targets, shape_of(pass, Answer::scores));
  const size_t n = pass.asked.size();
  std::vector<float> stats(3 * n);
  if (stats_.defined()) stats = download_f32(executor_.device(), stats_.rows(0, static_cast<int64_t>(n)));
  stats = from_last_stage(std::move(stats));
  std::vector<TargetScore> scores(n);
  for (size_t i = 0; i < n; ++i) {
    const double largest = stats[3 * i], sum = stats[3 * i + 1], target = stats[3 * i + 2];
    scores[i] = {.logprob = target - largest - std::log(sum), .greedy = target >= largest};
  }
  return scores;
}

std::vector<LikeliestToken> KvPasses::likeliest(const TokenPass& pass) {
  run(pass, {}, shape_of(pass, Answer::likeliest));
  const size_t n = pass.asked.size();
  const auto count = static_cast<int64_t>(n);
  const Mesh& mesh = executor_.mesh();
  const auto parts = static_cast<size_t>(mesh.shape().tp);
  std::vector<LikeliestToken> best(n);
  if (best_.defined()) {
    std::vector<int32_t> ids(n);
    executor_.device().download(ids.data(), best_.rows(0, count));
    std::vector<LikeliestToken> all(n * parts);
    LikeliestToken* own = all.data() + static_cast<size_t>(mesh.coord().tp) * n;
    const std::vector<float> logits = download_f32(executor_.device(), best_logit_.rows(0, count));
    for (size_t i = 0; i < n; ++i) own[i] = {.id = ids[i], .logit = logits[i]};
    if (parts > 1) mesh.along(Axis::tp).host().all_gather_bytes(all.data(), n * sizeof(LikeliestToken));
    for (size_t i = 0; i < n; ++i) {
      best[i] = all[i];
      for (size_t p = 1; p < parts; ++p)  // in the order of the vocabulary: the lowest id among equals
        if (all[p * n + i].logit > best[i].logit) best[i] = all[p * n + i];
    }
  }
  if (mesh.shape().pp > 1) mesh.along(Axis::pp).host().broadcast_bytes(best.data(), n * sizeof(LikeliestToken), mesh.shape().pp - 1);
  mesh.check();
  return best;
}

std::vector<float> KvPasses::logits(const TokenPass& pass) {
  run(pass, {}, shape_of(pass, Answer::logits));
  const auto rows = static_cast<int64_t>(pass.asked.size());
  const int64_t vocab = executor_.config().model.vocab;
  std::vector<float> all(static_cast<size_t>(rows * vocab));
  if (logits_.defined()) {
    std::vector<float> own = download_f32(executor_.device(), logits_.rows(0, rows));
    Comm& tp = executor_.mesh().along(Axis::tp).host();
    if (tp.size() == 1) {
      all = std::move(own);
    } else {
      const int64_t width = logits_.dim(1);
      for (int64_t r = 0; r < rows; ++r)
        tp.all_gather(Tensor::contiguous(all.data() + r * vocab, DType::f32, {vocab}),
                      Tensor::contiguous(own.data() + r * width, DType::f32, {width}));
    }
  }
  return from_last_stage(std::move(all));
}

void KvPasses::fill(const TokenPass& pass) {
  run(pass, {}, shape_of(pass, Answer::none));
  executor_.mesh().check();
}

TokenPass KvPasses::dense_pass() const {
  TokenPass full;
  const std::vector<int32_t> tokens(static_cast<size_t>(limits_.length), 0);
  for (int64_t left = limits_.tokens; left > 0;) {
    const int64_t n = std::min(left, limits_.length);
    const TokenPass::Run run{.slot = 0, .end = static_cast<int32_t>(n)};
    full.add({tokens.data(), static_cast<size_t>(n)}, 0, {&run, 1});
    left -= n;
  }
  full.asked.resize(static_cast<size_t>(limits_.asked), 0);
  return full;
}

void KvPasses::rehearse_scoring() {
  const TokenPass dense = dense_pass();
  score(dense, std::vector<int32_t>(dense.asked.size(), 0));
}

// Scratch of attention does not fall when a pass has more segments: as many as there may be, though the tokens are in few.
void KvPasses::rehearse() {
  executor_.fp8().widen();
  const TokenPass dense = dense_pass();
  for (const Answer answer : {Answer::scores, Answer::likeliest}) {
    Shape s = shape_of(dense, answer);
    s.segments = limits_.segments;
    run(dense, answer == Answer::scores ? std::vector<int32_t>(dense.asked.size(), 0) : std::vector<int32_t>(), s);
  }
  rehearse_decoding();
  executor_.fp8().narrow();
}

// One token of each of many texts, as many as attention may split the keys of.
void KvPasses::rehearse_decoding() {
  const int64_t rows = std::min({kFewTokens, limits_.segments, limits_.tokens});
  TokenPass pass;
  const TokenPass::Run run{.slot = 0, .end = static_cast<int32_t>(limits_.length)};
  const int32_t token = 0;
  for (int64_t r = 0; r < rows; ++r) pass.add({&token, 1}, run.end - 1, {&run, 1});
  fill(pass);
  if (limits_.logit_rows == 0) return;
  pass.asked.resize(static_cast<size_t>(std::min(limits_.logit_rows, rows)), 0);
  logits(pass);
}

}  // namespace hlat
