// The interface between the CPU backend and its per-instruction-set kernels: a table of single-threaded functions on
// row ranges. Index 0 of a pair is f32 data, index 1 is bf16 data (uint16_t bits). Plain types only: this header is
// compiled with each instruction set's flags and must not bring inline functions along.
#pragma once

#include <cstdint>

namespace hlat {

struct AttentionPackArgs {
  const void* qkv;             // row 0 of one sequence, or of a part of it that begins a tile
  int64_t row;                 // elements from row to row
  int64_t k_offset, v_offset;  // columns of this kv head
  int64_t seq, head_dim;
  int64_t first_tile;  // where the rows go: the tile of the sequence that row 0 begins
  // attention_packed floats each, in an order of the instruction set's own, zero padded
  void* k_tiles;  // for the scores
  void* v_tiles;  // the same of V, or null
  void* k_rows;   // for sums over keys, or null
  void* v_rows;   // the same of V, or null
};

struct AttentionForwardArgs {
  const void* q;  // first row of the query tile, this head
  int64_t q_row;
  int64_t first, rows;  // position in the sequence of the first row, rows up to the next multiple of kTile at most
  int64_t head_dim;
  const void* k_tiles;
  const void* v_rows;
  float scale;
  void* out;
  int64_t out_row;
  float* lse;   // of these rows, or null
  float* work;  // attention_forward_work floats
};

struct AttentionBackwardArgs {
  const void* q;  // one head of one sequence; row strides follow
  const void* dout;
  const void* out;
  const float* lse;
  int64_t q_row, out_row, seq, head_dim;
  const void* k_tiles;
  const void* v_tiles;
  const void* k_rows;
  float scale;
  void* dq;  // written, element type as q
  int64_t dq_row;
  float* dk;  // (T, Ep) written
  float* dv;  // (T, Ep) written
  float* work;
};

// Few queries over keys and values where they lie in a cache. A row is one head of one query; rows go by query, then by head.
struct KeyScanArgs {
  const void* q;  // first query and head; heads are neighbours, q_row elements from query to query
  int64_t q_row;
  int64_t queries, heads, head_dim;  // at most kTile rows
  const void* k;                     // this kv head's columns of slot 0
  const void* v;
  int64_t row;           // elements from slot to slot
  const int32_t* slots;  // of the keys
  int64_t keys;
  int64_t seen;  // of the keys, by query 0; it may be none and it may be all and more. Each query sees one more than the one before
  float scale;
  float* peak;   // (kScanStats) largest score
  float* total;  // (kScanStats) sum of exp(score - peak)
  float* sums;   // (rows, Ep) sum of exp(score - peak) v
  float* work;   // key_scan_work floats
};

// Panels of an operand of the tile product: 32 rows of op(A) or columns of op(B) each.
struct GemmPackArgs {
  uint16_t* dst;        // lines x k, both rounded up to 32
  const uint16_t* src;  // first element of the panel
  int64_t ld;
  bool transposed;
  int64_t lines, k;  // rows or columns that exist, length along k
};

// One block of C = or += A B, from packed panels.
struct GemmBlockArgs {
  const uint16_t* a;  // panels one after the other, 1024 * steps elements each
  const uint16_t* b;
  int64_t rows, cols, steps;
  void* c;
  int64_t ldc;
  bool c_bf16, accumulate;
  const float* start;  // sums to begin with, or null
  int64_t start_row;
};

// C = or += X W^T for at most kFewRows rows of X.
struct RowProductArgs {
  const void* x;
  const void* w;
  int64_t x_row, w_row, rows, columns, k;  // columns of C: rows of W
  void* c;
  int64_t c_row;
  bool c_bf16, accumulate;
};

// Of an update, as Ops tells it (AdamwChange): what a part adds to it.
struct AdamwSums {
  double change_sq, unchanged;
  float m_max, v_min, v_max;  // v_min: infinity where none is above 0
};

struct AdamwArgs {
  void* weight;
  float* master;  // or null
  void* m;
  void* v;
  const void* grad;
  int64_t begin, end;     // elements of the tensors
  int64_t first_element;  // global index of element 0
  float grad_scale, lr, beta1, beta2, eps, decay_factor, correction1, correction2_rsqrt;
  bool stochastic_weights, stochastic_moments;
  uint32_t key_weight[2];  // Philox key words
  uint32_t step;
  AdamwSums* sums;  // measured kernels add to it
};

inline constexpr int64_t kTile = 64;      // query and key tile of attention
inline constexpr int64_t kMaxHead = 512;  // largest head size of attention: a bound of buffers on the stack
inline constexpr int64_t kFewRows = 8;
inline constexpr int64_t kScanStats = 2 * kTile;  // statistics of a scan's rows, with room for whole vectors after any of them

struct CpuKernels {
  const char* name;
  void (*widen)(float* dst, const uint16_t* src, int64_t n);
  void (*narrow)(uint16_t* dst, const float* src, int64_t n);
  void (*narrow_stochastic)(uint16_t* dst, const float* src, int64_t n, int64_t first_element, const uint32_t* key, uint32_t step,
                            uint32_t purpose);
  void (*add[2])(void* y, const void* a, const void* b, int64_t n);
  double (*sum[2])(const void* x, int64_t n);  // in f64
  double (*sum_squares[2])(const void* x, int64_t n);
  // Part of the sum of Ops::checksum: `bytes` from word first_word on; only the last word may be short.
  uint64_t (*checksum)(const void* x, int64_t bytes, int64_t first_word);
  float (*largest[2])(const void* x, int64_t n, bool absolute);  // -inf of nothing, NaN where there is one
  void (*rmsnorm[2])(void* y, float* rstd, const void* x, const void* w, int64_t rows, int64_t width, float eps);
  void (*add_rmsnorm[2])(void* sum, void* y, float* rstd, const void* x, const void* delta, const void* w, int64_t rows, int64_t width,
                         float eps);
  // dw_sum (width) f32 is overwritten with this range's share
  void (*rmsnorm_bwd[2])(void* dx, float* dw_sum, const void* dy, const void* x, const void* w, const float* rstd, int64_t rows,
                         int64_t width, bool add_dx);
  void (*rope[2])(void* qkv, const float* table, int64_t first_row, int64_t rows, int64_t seq, int64_t row, int64_t rotated_heads,
                  int64_t head_dim, float sign);
  void (*swiglu[2])(void* y, const void* gu, int64_t rows, int64_t width);
  void (*swiglu_bwd[2])(void* dgu, const void* dy, const void* gu, int64_t rows, int64_t width);
  void (*ce_partial[2])(float* stats, const void* logits, const int32_t* targets, int64_t rows, int64_t width, int64_t first);
  void (*ce_bwd[2])(void* dlogits, const void* logits, const float* stats, const int32_t* targets, int64_t rows, int64_t width,
                    int64_t first, float scale);
  int64_t (*attention_packed[2])(int64_t seq, int64_t head_dim);
  void (*attention_pack[2])(const AttentionPackArgs&);
  int64_t (*attention_forward_work[2])(int64_t head_dim);
  void (*attention_forward[2])(const AttentionForwardArgs&);
  int64_t (*attention_backward_work[2])(int64_t seq, int64_t head_dim);
  void (*attention_backward[2])(const AttentionBackwardArgs&);
  int64_t (*key_scan_work)(int64_t rows, int64_t head_dim);
  void (*key_scan[2])(const KeyScanArgs&);
  // Largest of each row, NaN above all, and the first place that has it.
  void (*argmax[2])(int32_t* places, float* values, const void* x, int64_t rows, int64_t width);
  // (dst rows) = src (T, Ep) f32, head_dim columns, to f32 or bf16 rows
  void (*store_rows[2])(void* dst, int64_t row, const float* src, int64_t rows, int64_t head_dim);
  // Weight, moments and gradient types: [weight bf16][moment bf16][grad bf16]. Returns the sum of squares of the new weights.
  double (*adamw[2][2][2])(const AdamwArgs&);
  double (*adamw_measured[2][2][2])(const AdamwArgs&);  // the same update, and what it changed
  void (*row_product[2])(const RowProductArgs&);
  // The bf16 product on tiles: null but with AMX.
  void (*gemm_pack_a)(const GemmPackArgs&);
  void (*gemm_pack_b)(const GemmPackArgs&);
  void (*gemm_block)(const GemmBlockArgs&);
};

// E rounded up to whole vectors of the widest set, so that layouts do not depend on the set.
constexpr int64_t padded_head(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }

namespace generic {
const CpuKernels& kernels();
}
namespace avx2 {
const CpuKernels& kernels();
}
namespace avx512 {
const CpuKernels& kernels();
}
namespace amx {
const CpuKernels& kernels();
}

}  // namespace hlat
