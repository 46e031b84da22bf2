#include "backend/cpu/matmul.h"

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>

#include "backend/cpu/amx_matmul.h"

namespace hlat {

namespace {

using dnnl::memory;

memory::data_type type_of(DType t) { return t == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32; }

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
size_t f32_bytes(int64_t rows, int64_t cols) { return aligned(static_cast<size_t>(rows * cols) * sizeof(float)); }

struct Primitive {
  dnnl::matmul op;
  memory::desc a, b, c, scratch;
};

}  // namespace

struct CpuMatmul::Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  using Key = std::tuple<int64_t, int64_t, int64_t, bool, bool, bool, DType, DType, int64_t, int64_t, int64_t, bool>;
  std::map<Key, Primitive> primitives;  // made once per shape

  // own: the library has the scratch, as sgemm does, for strides that want more than dense operands.
  const Primitive& get(const MatmulShape& s, int64_t lda, int64_t ldb, int64_t ldc, bool own = false) {
    const Key key{s.m, s.n, s.k, s.trans_a, s.trans_b, s.accumulate, s.a, s.c, lda, ldb, ldc, own};
    const auto found = primitives.find(key);
    if (found != primitives.end()) return found->second;
    Primitive p;
    p.a = memory::desc({s.m, s.k}, type_of(s.a), s.trans_a ? memory::dims{1, lda} : memory::dims{lda, 1});
    p.b = memory::desc({s.k, s.n}, type_of(s.b), s.trans_b ? memory::dims{1, ldb} : memory::dims{ldb, 1});
    p.c = memory::desc({s.m, s.n}, type_of(s.c), memory::dims{ldc, 1});
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(own ? dnnl::scratchpad_mode::library : dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops post;
      post.append_sum(1.0f);
      attr.set_post_ops(post);
    }
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(p.a, p.b, p.c), attr, engine);
    p.op = dnnl::matmul(desc);
    p.scratch = desc.scratchpad_desc();
    return primitives.emplace(key, std::move(p)).first->second;
  }
};

CpuMatmul::CpuMatmul(const CpuKernels& kernels, const Threads& threads, bool native_bf16, bool few_rows)
    : kernels_(kernels), threads_(threads), native_bf16_(native_bf16), few_rows_(few_rows), library_(std::make_unique<Library>()) {}

CpuMatmul::~CpuMatmul() = default;

namespace {

int64_t dense_lda(const MatmulShape& s) { return s.trans_a ? s.m : s.k; }
int64_t dense_ldb(const MatmulShape& s) { return s.trans_b ? s.k : s.n; }

// Faster than the f32 matmul primitive in most shapes of a step (docs/adr/0002). Its packing buffers are the library's own, a few
// MiB per thread.
void sgemm(const Tensor& c, const Tensor& a, const Tensor& b, const MatmulShape& s) {
  const auto status = dnnl::sgemm(s.trans_a ? 'T' : 'N', s.trans_b ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a.as<float>(), a.stride[0],
                                  b.as<float>(), b.stride[0], s.accumulate ? 1.0f : 0.0f, c.as<float>(), c.stride[0]);
  HLAT_CHECK(status == dnnl::status::success, "sgemm {} x {} x {}: status {}", s.m, s.n, s.k, static_cast<int>(status));
}

}  // namespace

// Packing W would cost more than the product.
bool CpuMatmul::has_few_rows(const MatmulShape& s) const { return few_rows_ && s.m <= kFewRows && !s.trans_a && s.trans_b; }

size_t CpuMatmul::scratch(const MatmulShape& s) const {
  if (s.a == DType::f32 || has_few_rows(s) || s.m == 0 || s.n == 0 || s.k == 0) return 0;
  if (kernels_.gemm_block != nullptr) return amx_matmul_scratch(s, threads_.count());
  if (native_bf16_) return aligned(library_->get(s, dense_lda(s), dense_ldb(s), s.n).scratch.get_size());
  return f32_bytes(s.m, s.k) + f32_bytes(s.k, s.n) + (s.c == DType::bf16 ? f32_bytes(s.m, s.n) : 0);
}

Tensor CpuMatmul::widened(Tensor t, std::byte*& cursor) const {
  const Tensor wide = Tensor::contiguous(cursor, DType::f32, t.shape);
  cursor += f32_bytes(t.dim(0), t.dim(1));
  threads_.ranges(t.dim(0), std::max<int64_t>(1, 4096 / std::max<int64_t>(t.dim(1), 1)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) kernels_.widen(wide.as<float>() + r * t.dim(1), t.as<uint16_t>() + r * t.stride[0], t.dim(1));
  });
  return wide;
}

void CpuMatmul::run(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) {
  if (s.m == 0 || s.n == 0) return;
  if (has_few_rows(s))
    run_few_rows(c, a, b, s);
  else if (s.a == DType::f32)
    sgemm(c, a, b, s);
  else if (kernels_.gemm_block != nullptr && s.k > 0)
    amx_matmul(kernels_, threads_, c, a, b, s, scratch);
  else if (native_bf16_)
    run_native(c, a, b, s, scratch);
  else
    run_widened(c, a, b, s, scratch);
}

void CpuMatmul::run_few_rows(Tensor c, Tensor a, Tensor b, const MatmulShape& s) const {
  constexpr int64_t kWeightsPerThread = 65536;  // elements of W for a thread
  threads_.ranges(s.n, std::max<int64_t>(1, kWeightsPerThread / std::max<int64_t>(s.k, 1)), [&](int64_t begin, int64_t end) {
    RowProductArgs args{};
    args.x = a.data;
    args.w = static_cast<std::byte*>(b.data) + begin * b.stride[0] * static_cast<int64_t>(size_of(s.b));
    args.x_row = a.stride[0];
    args.w_row = b.stride[0];
    args.rows = s.m;
    args.columns = end - begin;
    args.k = s.k;
    args.c = static_cast<std::byte*>(c.data) + begin * static_cast<int64_t>(size_of(s.c));
    args.c_row = c.stride[0];
    args.c_bf16 = s.c == DType::bf16;
    args.accumulate = s.accumulate;
    kernels_.row_product[s.a == DType::bf16 ? 1 : 0](args);
  });
}

void CpuMatmul::run_native(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) {
  const Primitive& planned = library_->get(s, a.stride[0], b.stride[0], c.stride[0]);
  const bool fits = planned.scratch.get_size() <= (scratch.defined() ? scratch.bytes() : 0);
  const Primitive& p = fits ? planned : library_->get(s, a.stride[0], b.stride[0], c.stride[0], true);
  auto& engine = library_->engine;
  p.op.execute(library_->stream, {{DNNL_ARG_SRC, memory(p.a, engine, a.data)},
                                  {DNNL_ARG_WEIGHTS, memory(p.b, engine, b.data)},
                                  {DNNL_ARG_DST, memory(p.c, engine, c.data)},
                                  {DNNL_ARG_SCRATCHPAD, memory(p.scratch, engine, scratch.data)}});
  library_->stream.wait();
}

void CpuMatmul::run_widened(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) {
  auto* cursor = scratch.as<std::byte>();
  a = widened(a, cursor);
  b = widened(b, cursor);
  if (c.dtype == DType::f32) return sgemm(c, a, b, s);
  const Tensor sums = s.accumulate ? widened(c, cursor) : Tensor::contiguous(cursor, DType::f32, c.shape);
  sgemm(sums, a, b, s);
  threads_.ranges(c.dim(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) kernels_.narrow(c.as<uint16_t>() + r * c.stride[0], sums.as<float>() + r * s.n, s.n);
  });
}

}  // namespace hlat
