// The conformance table: op x shapes x dtypes, checked on any backend against the f64 reference.
//
// A Row is one call of one op on one shape. Its body makes Twins (the same tensor for the backend under test and for the
// reference), runs the op on both, and states what may differ. Inputs are rounded to their dtype first and widened
// exactly for the reference, so only the op's own arithmetic is measured. Outputs start as NaN: what is not written shows.
//
// The tolerance of one element is
//   round(dtype) * |ref| + (units * 2^-24 + bf16_units * 2^-8 when the row's dtype is bf16) * magnitude + 1e-30
// round: half an ulp of the stored dtype, 2^-24 for f32 and 2^-8 for bf16, because every op rounds its result once.
// units: f32 roundings inside the op. A sum of k terms in any order errs by at most k units of sum |term| and, with
//   roundings that do not conspire, by a small multiple of sqrt(k): rows use sum_units(k) = 4 sqrt(k), which is the strict
//   bound up to k = 16. Elementary functions count 4 units, and exp(x) counts |x| more for the rounding of its argument.
// magnitude: the sum of absolute values of the terms behind the element (|ref| for ops that do not cancel).
// bf16_units: intermediates a backend may keep in bf16 (attention weights and their gradients).
// 1e-30: where f32 exponentials underflow.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "ops/ref_ops.h"
#include "support/host_memory.h"
#include "tensor/columns.h"

namespace hlat {

struct TestBackend {
  std::string name;
  std::function<std::unique_ptr<Ops>(Region& temp)> make;
  Allocate allocate = allocate_host;
  std::function<void()> sync = [] {};  // waits until results can be read
};

inline void PrintTo(const TestBackend& backend, std::ostream* out) { *out << backend.name; }  // for GoogleTest

// The backends of this machine that the tests run on: the CPU in each instruction set and, where there is a GPU, cuda.
std::vector<TestBackend> test_backends();

// One tensor, three times: under test, the f64 reference, and absolute values in f64 for magnitudes of linear ops.
struct Twin {
  Tensor test, ref, mag;
  Twin cols(int64_t begin, int64_t end) const { return {columns(test, begin, end), columns(ref, begin, end), columns(mag, begin, end)}; }
  Twin rows(int64_t begin, int64_t end) const { return {test.rows(begin, end), ref.rows(begin, end), mag.rows(begin, end)}; }
};

// Picks one of the three.
struct View {
  Tensor Twin::*side;
  Tensor operator()(const Twin& t) const { return t.*side; }
};

struct Tolerance {
  double units = 0;
  std::vector<double> magnitude = {};  // empty: |ref|
  double bf16_units = 0;
  bool rounded = true;  // false: no allowance for the final rounding
};

// The 16 noise bits of element e, read off the stream as base/rng.h documents it.
inline uint16_t noise_at(const NoiseKey& key, int64_t e) {
  const auto words = philox_block(key, static_cast<uint64_t>(e) / 8);
  return static_cast<uint16_t>(words[static_cast<size_t>(e % 8 / 2)] >> (e % 2 == 0 ? 0 : 16));
}

inline double sum_units(int64_t terms) { return 4 * std::sqrt(static_cast<double>(terms)); }

class Lab {
 public:
  Lab(const TestBackend& backend, DType dtype);

  DType dtype() const { return dtype_; }  // the row's dtype: activations and weights
  Twin values(DType dtype, const Shape& shape, const std::vector<double>& values);
  Twin values(const Shape& shape, const std::vector<double>& v) { return values(dtype_, shape, v); }
  Twin input(const Shape& shape, std::string_view name, double std = 1.0);
  Twin ids(const std::vector<int32_t>& ids);
  Twin segments(const std::vector<KvSegment>& segments);
  Twin output(DType dtype, const Shape& shape);
  Twin output(const Shape& shape) { return output(dtype_, shape); }
  Twin stat(const Shape& shape) { return output(DType::f32, shape); }
  Twin output_ids(int64_t n);
  // The reference values of `t`, rounded to `dtype`, as a fresh input.
  Twin rounded(DType dtype, const Twin& t) { return values(dtype, t.ref.shape, to_f64(t.ref)); }

  using Body = std::function<void(Ops&, const View&)>;
  void run_alone(const Body& body);   // on the backend
  void run(const Body& body);         // on the backend and on the reference
  void run_linear(const Body& body);  // and on the magnitudes

  void expect(const char* what, const Twin& t, const Tolerance& tolerance);
  void expect_linear(const char* what, const Twin& t, double units);
  // From here on the reference goes on with the values the backend stored.
  void adopt(const Twin& t);

  const std::string& backend() const { return backend_.name; }
  void sync() const { backend_.sync(); }
  HostMemory& memory() { return memory_; }
  Ops& ops() { return *ops_; }
  Ops& ref() { return ref_; }

 private:
  const TestBackend& backend_;
  DType dtype_;
  HostMemory memory_;
  Region temp_;
  Region ref_temp_;
  std::unique_ptr<Ops> ops_;
  RefOps ref_;
};

struct Row {
  std::string op;
  std::string shape;
  std::function<void(Lab&)> body;
};
using Table = std::vector<Row>;

const Table& conformance_table();

// The parts of the table, one file each.
void add_linear_rows(Table& table);     // embed, matmul, add, rope
void add_layer_rows(Table& table);      // rmsnorm, swiglu
void add_attention_rows(Table& table);  // attention
void add_cache_rows(Table& table);      // cache_append, cache_attention
void add_loss_rows(Table& table);       // cross-entropy, argmax, sums, checksum
void add_optim_rows(Table& table);      // adamw
void add_narrow_rows(Table& table);     // plain ops that round after every step
void add_fp8_rows(Table& table);        // stores and products of FP8
void add_fp8_fused_rows(Table& table);  // ops that store their result in FP8

}  // namespace hlat
