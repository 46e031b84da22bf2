// The op set: the only arithmetic the model, the optimizer and the step know.
// A public method checks the contract (shapes, dtypes, layout), counts the cost and reserves scratch; a backend
// overrides only the body (do_*). Outputs come first, inputs next, scalars last. An op touches only its arguments.
//
// Activations and weights are f32 or bf16 (f64 in the reference backend); statistics are f32 (f64 there).
// Unless said otherwise tensors are contiguous; tensors without rows or elements are legal and cost nothing, but for
// attention and for logits without a vocabulary. Shape letters: B sequences, T tokens, N = B*T, D model, H query heads,
// K kv heads, E head size, F ffn, V vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "flight/flight_recorder.h"
#include "ops/cost.h"
#include "ops/element_map.h"
#include "ops/fp8.h"
#include "ops/op_args.h"
#include "ops/rope_frequencies.h"
#include "tensor/region.h"
#include "tensor/tensor.h"
#include "trace/step_trace.h"

namespace hlat {

class Ops {
 public:
  virtual ~Ops() = default;
  Ops(const Ops&) = delete;
  Ops& operator=(const Ops&) = delete;

  // Vocabulary-parallel: table rows hold vocabulary [first, first + V). An id is not negative.
  // y[n] = table[ids[n] - first], or 0 when the id is not in this shard
  void embed(Tensor y /*(N, D)*/, Tensor ids /*(N) i32*/, Tensor table /*(V, D)*/, int64_t first);
  // dtable[ids[n] - first] += dy[n] for the ids of this shard, in an order that depends on the ids alone
  void embed_bwd(Tensor dtable /*(V, D)*/, Tensor ids, Tensor dy /*(N, D)*/, int64_t first);

  // c = op(a) op(b), or c += ... ; op(a) is (m, k), op(b) is (k, n). Rows may be strided, the last dimension is dense.
  // a and b share a dtype; c is that dtype or f32. Sums are kept in f32 until the store.
  struct MatmulArgs {
    bool trans_a = false, trans_b = false, accumulate = false;
  };
  void matmul(Tensor c, Tensor a, Tensor b, MatmulArgs args);
  // c = op(a) op(b) + residual, both terms rounded to their dtype; c may not be the residual.
  void matmul_add(Tensor c, Tensor a, Tensor b, Tensor residual /*(m, n)*/, MatmulArgs args);

  // y = x * rstd * w, rstd = 1 / sqrt(mean(x^2) + eps)
  void rmsnorm(Tensor y /*(N, D)*/, Tensor rstd /*(N)*/, Tensor x /*(N, D)*/, Tensor w /*(D)*/, double eps);
  // sum = x + delta (rounded to its dtype), then y, rstd as rmsnorm(sum). sum may alias x or delta.
  void add_rmsnorm(Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps);
  struct NormBwdArgs {
    bool add_dx = false;         // dx += instead of dx =
    bool accumulate_dw = false;  // dw += instead of dw =
  };
  // dx may alias dy unless add_dx is set.
  void rmsnorm_bwd(Tensor dx, Tensor dw /*(D)*/, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args);

  // Row t holds cos(t * f_i) for i in [0, E/2), then sin(t * f_i); f_i = frequencies.at(i, E). Angles in double.
  void rope_table(Tensor table /*(T, E) f32*/, const RopeFrequencies& frequencies);
  // In place on the q and k heads of qkv, rotate-half pairing (i, i + E/2); sign -1 is the inverse (and the backward).
  void rope(Tensor qkv /*(N, (H+2K)E)*/, Tensor table /*(T, E)*/, AttentionShape s, int sign);

  // Causal softmax attention, scale 1/sqrt(E). lse[b, h, t] is the log-sum-exp of scaled scores.
  void attention(Tensor out /*(N, H*E)*/, Tensor lse /*(B, H, T)*/, Tensor qkv, AttentionShape s);
  // With rope, the table by which q and k were rotated: then rope(dqkv, rope, s, -1), which a backend may do before it rounds.
  void attention_bwd(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor rope = {});

  // RoPE in place on the q and k heads of each token, by its own position, then its key and value go to row slots[n] of the cache.
  void cache_append(Tensor cache /*(C, 2KE)*/, Tensor qkv /*(N, (H+2K)E)*/, Tensor table /*(T, E)*/, Tensor positions /*(N) i32*/,
                    Tensor slots /*(N) i32*/, const CacheShape& s);
  // Softmax attention of the queries in qkv over the keys and values in the cache, scale 1/sqrt(E). Rows of no segment are left as they
  // are. The result of a query does not depend on the other segments of the call.
  void cache_attention(Tensor out /*(N, H*E)*/, Tensor qkv, Tensor cache, Tensor segments /*(S, kKvSegment) i32*/, const CacheShape& s);

  // gu = [gate | up] per row; y = silu(gate) * up
  void swiglu(Tensor y /*(N, F)*/, Tensor gu /*(N, 2F)*/);
  void swiglu_bwd(Tensor dgu /*(N, 2F), may alias gu*/, Tensor dy /*(N, F)*/, Tensor gu /*(N, 2F)*/);

  void add(Tensor y, Tensor a, Tensor b);  // y may alias a or b; f64 too, exactly

  // Vocabulary-parallel cross-entropy in parts; columns hold vocabulary [first, first + V). A negative target is ignored.
  // stats[n] = {max, sum of exp(logit - max), target logit or 0 when it is not in this shard}
  void cross_entropy_partial(Tensor stats /*(N, 3)*/, Tensor logits /*(N, V)*/, Tensor targets /*(N) i32*/, int64_t first);
  // The statistics of P shards, in shard order, become those of the whole vocabulary. stats may be the first of the parts.
  void cross_entropy_merge(Tensor stats /*(N, 3)*/, Tensor parts /*(P, N, 3)*/);
  // loss_sum += sum over n of log(sumexp) + max - target
  void cross_entropy_finish(Tensor loss_sum /*(1) f64*/, Tensor stats, Tensor targets);
  // dlogits = scale * (softmax - onehot); dlogits may alias logits
  void cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale);

  // partial, finish and bwd in place on logits of the whole vocabulary, in one go.
  void cross_entropy_whole(Tensor loss_sum, Tensor logits, Tensor stats, Tensor targets, double scale);

  // The largest logit of each row (NaN above all) and its token id, the lowest among equals; columns hold vocabulary [first, first + V).
  void argmax(Tensor ids /*(N) i32*/, Tensor values /*(N)*/, Tensor logits /*(N, V)*/, int64_t first);

  // dst = src, rounded. The key matters only for stochastic rounding to bf16.
  void cast(Tensor dst, Tensor src, Rounding rounding = Rounding::nearest, NoiseKey key = {}, ElementMap map = {});
  void fill(Tensor t, double value);
  // Element e of the tensor is std * normal(key, map.global(e)).
  void fill_normal(Tensor t, double std, NoiseKey key, ElementMap map = {});

  void sum(Tensor out /*(1) f64*/, Tensor x /*(P)*/);  // kept in f64; of f64 in order of the index
  void sum_squares(Tensor out /*(1) f64*/, Tensor x);  // out = sum of x^2
  void sum_squares(Tensor out /*(P) f64*/, std::span<const Tensor> x /*P*/);
  // scale = min(1, max_norm / (sqrt(sum sq) + 1e-6)), or 1 when max_norm is 0; NaN when the sum is not finite
  void clip_scale(Tensor scale /*(1) f32*/, Tensor sq /*(P) f64*/, double max_norm);
  // One fused pass: unscale, moments, decoupled decay, update, rounding. A scale that is NaN leaves everything as it is (weight_sq is
  // then NaN): a step with bad gradients does no harm, and the host need not look before the update.
  // The tensors of a call share types, scale, step and all constants but decay, stream and map.
  void adamw(std::span<const AdamwItem> items);

  // A fingerprint of the bits of x (any dtype), low half first: the sum modulo 2^64 over i of
  //   mix(w[i] + (i + 1) * 0x9e3779b97f4a7c15), w[i] = 8 bytes from byte 8 i, little-endian, zeros past the end;
  //   mix(z): twice z = (z ^ z >> 32) * 0xd6e8feb86659fd93, then z ^ z >> 32.
  // mix is one-to-one, so a change in one word is always seen. The order of the sum does not matter.
  void checksum(Tensor out /*(2) i32*/, Tensor x);

  // Plain forms of ops whose fused ones compute in f32, for precision policies outside the presets. Tensors are bf16 (f64 in the reference
  // backend, which rounds nothing). A `narrow` op rounds to the nearest bf16 after every arithmetic step; sums are kept in f32 and rounded
  // once.
  // Row t of p is the softmax of scale * scores[t, 0 .. t], then zeros; lse[t] the log-sum-exp. p may be scores.
  void narrow_softmax(Tensor p /*(T, T)*/, Tensor lse /*(T)*/, Tensor scores /*(T, T)*/, double scale);
  // dscores = scale * p * (dp - sum over the row of p * dp); dscores may be dp.
  void narrow_softmax_bwd(Tensor dscores /*(T, T)*/, Tensor dp, Tensor p, double scale);
  void narrow_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps);
  void narrow_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args);
  void narrow_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first);
  void narrow_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets);
  void narrow_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale);
  // dst = src, rounded stochastically; rows of both may be strided. Element (n, c) has the noise of map.global(n * C + c).
  void round_rows(Tensor dst /*(N, C) bf16*/, Tensor src /*(N, C) f32*/, NoiseKey key, ElementMap map);
  // out = max(out, x), or max(out, |x|): NaN is above all numbers, so one that was met stays.
  void largest(Tensor out /*(1) f64*/, Tensor x, bool absolute);
  // Adds the losses of tokens, of statistics as cross_entropy_finish takes them, to a table: token i of the call is token first + i of a
  // batch of rows of `seq` tokens; row r adds to line groups[r], position t to column t * P / seq. A negative target adds nothing.
  void add_losses(Tensor table /*(G, P) f64*/, Tensor stats /*(n, 3)*/, Tensor targets /*(n) i32*/, Tensor groups /*(B) i32*/,
                  int64_t first, int64_t seq);

  // FP8 (ops/fp8.h). A fused op stores what quantize makes of the plain op's bf16 result; that result itself may be undefined, where nobody
  // reads it.
  void quantize(const Fp8Store& out, Tensor x /*(N, C) bf16*/);
  void rmsnorm_fp8(const Fp8Store& out, Tensor y, Tensor rstd, Tensor x, Tensor w, double eps);
  void add_rmsnorm_fp8(const Fp8Store& out, Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps);
  void swiglu_fp8(const Fp8Store& out, Tensor y, Tensor gu);
  void swiglu_bwd_fp8(const Fp8Store& out, Tensor dgu, Tensor dy, Tensor gu);
  // dst = src rounded, of any shape: a weight (fp8) of its master (f32 or bf16).
  void quantize_flat(Tensor dst /*fp8*/, Tensor src, Tensor scale /*(kFp8Scale)*/, Tensor seen /*(kFp8Seen), or undefined*/);
  void transpose(Tensor y /*(C, N)*/, Tensor x /*(N, C)*/);                          // of one-byte elements
  void dequantize(Tensor y /*(N, C) bf16*/, Tensor x /*(N, C) fp8*/, Tensor scale);  // exact
  // c = a b^T or c += a b^T, with the inverse scales; c is bf16 or f32. Sums are kept in f32 or, with fast_sums, in what the tensor cores
  // keep. With a residual (m, n), which may not be c: c = a b^T + residual, as matmul_add. m, n and k are multiples of 16.
  struct Fp8MatmulArgs {
    bool accumulate = false, fast_sums = false;
  };
  void matmul_fp8(Tensor c /*(m, n)*/, Fp8Operand a /*(m, k)*/, Fp8Operand b /*(n, k)*/, Tensor residual, Fp8MatmulArgs args);
  // Between steps, for U tensors: the largest value that any of P ranks has seen takes the place of the one kFp8History steps ago, and the
  // scale becomes the largest power of two that keeps the largest of the history within limit. A tensor of which nothing but zeros was seen
  // so far, or of which something not finite was seen, keeps what it has. reset, if defined, is then set to 0. A clip that is NaN (the
  // factor of the update that follows) leaves everything as it is.
  void fp8_scales(Tensor scale /*(U, kFp8Scale) f32*/, Tensor history /*(U, kFp8History) f32*/, Tensor seen /*(P, U, kFp8Seen) f64*/,
                  Tensor limit /*(U) f32*/, Tensor step /*(kAdamwStep) f64*/, Tensor clip = {} /*(1) f32*/,
                  Tensor reset = {} /*(R, kFp8Seen) f64*/);

  const Cost& cost() const { return cost_; }
  void reset_cost() {
    cost_ = {};
    spans_.clear();
  }
  // Also measure time per op, and per shape for matmul. What was measured is in cost() after collect_times().
  void set_timing(bool on) { timing_ = on; }
  bool timing() const { return timing_; }
  void record_to(FlightRecorder& flight) { flight_ = &flight; }  // every op from now on; it must outlive this
  void trace_to(StepTrace& trace) { trace_ = &trace; }           // likewise
  void collect_times();

  // Bytes of scratch an op needs beyond its arguments, a pure function of shape (and of this machine's backend).
  virtual size_t matmul_scratch(const MatmulShape&) const { return 0; }
  virtual size_t attention_scratch(const AttentionShape&, DType, bool /*backward*/) const { return 0; }
  // Not less for more segments, queries or keys; but with one query for each of at most kFewTokens tokens it may be more than all of these.
  virtual size_t cache_attention_scratch(int64_t /*tokens*/, int64_t /*segments*/, const CacheShape&, DType) const { return 0; }
  virtual size_t rmsnorm_bwd_scratch(int64_t /*rows*/, int64_t /*width*/) const { return 0; }
  virtual size_t embed_bwd_scratch(int64_t /*tokens*/, int64_t /*width*/) const { return 0; }
  // Of the ops that reduce a whole tensor to one number: sum, sum_squares, adamw, checksum and largest; of many tensors the sum. adamw
  // takes it once for weight_sq and once for each number of an AdamwChange.
  virtual size_t reduce_scratch(int64_t /*elements*/) const { return 0; }
  // Of an op that stores FP8, where the backend makes the bf16 result (elements of it) in memory first.
  virtual size_t fp8_scratch(int64_t /*elements*/) const { return 0; }
  virtual size_t matmul_fp8_scratch(const MatmulShape&) const { return 0; }
  // Waits for the work of earlier calls, where a backend returns before it is done.
  virtual void finish() {}

 protected:
  // Moments in the order of the work, numbered from 0; a backend that returns early marks them in its own queue.
  virtual size_t mark_time();
  virtual double seconds_between(size_t from, size_t to);  // of marks, when their work is done
  virtual void forget_marks() { marks_.clear(); }

  explicit Ops(Region& temp) : temp_(temp) {}

  virtual void do_embed(Tensor y, Tensor ids, Tensor table, int64_t first) = 0;
  virtual void do_embed_bwd(Tensor dtable, Tensor ids, Tensor dy, int64_t first, Tensor scratch) = 0;
  virtual void do_matmul(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) = 0;
  virtual void do_matmul_add(Tensor c, Tensor a, Tensor b, Tensor residual, const MatmulShape& s, Tensor scratch);
  virtual void do_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) = 0;
  virtual void do_add_rmsnorm(Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) = 0;
  virtual void do_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args, Tensor scratch) = 0;
  virtual void do_rope_table(Tensor table, const RopeFrequencies& frequencies) = 0;
  virtual void do_rope(Tensor qkv, Tensor table, AttentionShape s, int sign) = 0;
  virtual void do_attention(Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch) = 0;
  virtual void do_attention_bwd(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch) = 0;
  virtual void do_attention_bwd_rope(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, Tensor rope, AttentionShape s,
                                     Tensor scratch);
  virtual void do_cache_append(Tensor cache, Tensor qkv, Tensor table, Tensor positions, Tensor slots, const CacheShape& s) = 0;
  virtual void do_cache_attention(Tensor out, Tensor qkv, Tensor cache, Tensor segments, const CacheShape& s, Tensor scratch) = 0;
  virtual void do_swiglu(Tensor y, Tensor gu) = 0;
  virtual void do_swiglu_bwd(Tensor dgu, Tensor dy, Tensor gu) = 0;
  virtual void do_add(Tensor y, Tensor a, Tensor b) = 0;
  virtual void do_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) = 0;
  virtual void do_cross_entropy_merge(Tensor stats, Tensor parts) = 0;
  virtual void do_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) = 0;
  virtual void do_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) = 0;
  virtual void do_cross_entropy_whole(Tensor loss_sum, Tensor logits, Tensor stats, Tensor targets, double scale);
  virtual void do_argmax(Tensor ids, Tensor values, Tensor logits, int64_t first) = 0;
  virtual void do_cast(Tensor dst, Tensor src, Rounding rounding, NoiseKey key, const ElementMap& map) = 0;
  virtual void do_fill(Tensor t, double value) = 0;
  virtual void do_fill_normal(Tensor t, double std, NoiseKey key, const ElementMap& map) = 0;
  virtual void do_sum(Tensor out, Tensor x, Tensor scratch) = 0;
  virtual void do_sum_squares(Tensor out, std::span<const Tensor> x, Tensor scratch) = 0;
  virtual void do_clip_scale(Tensor scale, Tensor sq, double max_norm) = 0;
  virtual void do_adamw(std::span<const AdamwItem> items, Tensor scratch) = 0;
  virtual void do_checksum(Tensor out, Tensor x, Tensor scratch) = 0;
  virtual void do_narrow_softmax(Tensor p, Tensor lse, Tensor scores, double scale) = 0;
  virtual void do_narrow_softmax_bwd(Tensor dscores, Tensor dp, Tensor p, double scale) = 0;
  virtual void do_narrow_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) = 0;
  virtual void do_narrow_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args,
                                     Tensor scratch) = 0;
  virtual void do_narrow_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) = 0;
  virtual void do_narrow_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) = 0;
  virtual void do_narrow_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) = 0;
  virtual void do_round_rows(Tensor dst, Tensor src, NoiseKey key, const ElementMap& map) = 0;
  virtual void do_largest(Tensor out, Tensor x, bool absolute, Tensor scratch) = 0;
  virtual void do_add_losses(Tensor table, Tensor stats, Tensor targets, Tensor groups, int64_t first, int64_t seq) = 0;
  virtual void do_quantize(const Fp8Store& out, Tensor x) = 0;
  // The fused ops: y, where it is undefined, is scratch in bf16, or undefined where fp8_scratch says that none is needed.
  virtual void do_rmsnorm_fp8(const Fp8Store& out, Tensor y, Tensor rstd, Tensor x, Tensor w, double eps);
  virtual void do_add_rmsnorm_fp8(const Fp8Store& out, Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps);
  virtual void do_swiglu_fp8(const Fp8Store& out, Tensor y, Tensor gu);
  virtual void do_swiglu_bwd_fp8(const Fp8Store& out, Tensor dgu, Tensor dy, Tensor gu);
  virtual void do_quantize_flat(Tensor dst, Tensor src, Tensor scale, Tensor seen) = 0;
  virtual void do_transpose(Tensor y, Tensor x) = 0;
  virtual void do_dequantize(Tensor y, Tensor x, Tensor scale) = 0;
  virtual void do_matmul_fp8(Tensor c, const Fp8Operand& a, const Fp8Operand& b, Tensor residual, const MatmulShape& s, bool fast_sums,
                             Tensor scratch) = 0;
  virtual void do_fp8_scales(Tensor scale, Tensor history, Tensor seen, Tensor limit, Tensor step, Tensor clip, Tensor reset) = 0;

 private:
  // The time of one op, still to be added to the op's seconds.
  struct Span {
    OpCost* op;
    OpCost* detail;  // or null
    size_t from, to;
  };
  // Keeps its lifetime as a span when timing is on.
  class Timed {
   public:
    Timed(Ops* ops, OpCost* op, OpCost* detail);
    ~Timed();
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    Ops* ops_;
    OpCost* op_;
    OpCost* detail_;
    size_t start_ = 0;
  };

  [[nodiscard]] Timed count(OpKind kind, double flops, double bytes, const MatmulShape* shape = nullptr, bool fast_sums = false);
  [[nodiscard]] Timed count(OpKind kind, double flops, double bytes, const AttentionShape& shape, DType dtype);
  [[nodiscard]] Timed count(const TracedOp& op, const MatmulShape* shape);
  void empty_product(Tensor c, bool accumulate);
  Tensor scratch(size_t bytes, OpKind kind);  // undefined when bytes is 0
  Tensor fp8_room(Tensor y, const Shape& shape);

  Region& temp_;
  FlightRecorder* flight_ = nullptr;
  StepTrace* trace_ = nullptr;
  Cost cost_;
  bool timing_ = false;
  std::vector<Span> spans_;
  std::vector<double> marks_;
};

}  // namespace hlat
