// The only file that includes the cuDNN frontend (header-only; it takes a minute to compile).
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include "backend/cuda/attention/cudnn_attention.h"

#include <cudnn_frontend.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/shared_library.h"
#include "ops/gpu_scratch.h"

namespace fe = cudnn_frontend;

// The frontend reads every cuDNN function through this handle. Written once, under the lock of a static initialisation.
void* fe::cudnn_dlhandle = nullptr;

namespace hlat {

namespace {

enum Uid : int64_t { kQ = 1, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv };

using TensorPtr = std::shared_ptr<fe::graph::Tensor_attributes>;
using Dims = std::vector<int64_t>;

// Loads libcudnn; returns the reason when it cannot be used.
const std::string& load_error() {
  static const std::string error = [] {
    // The frontend would take libcudart.so.12 first where several are installed.
    setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", cuda_library_name("libcudart", HLAT_CUDA_MAJOR).c_str(), 0);
    std::string why;
    fe::cudnn_dlhandle = open_library("libcudnn.so.9", HLAT_CUDA_LIBRARIES, why);
    return why;
  }();
  return error;
}

Dims strides(int64_t seq, int64_t row, int64_t head_dim) { return {seq * row, head_dim, row, 1}; }

struct Plan {
  fe::graph::Graph graph;
  int64_t workspace = 0;
  int64_t parts = 1;    // the batch is cut into this many
  std::string engine;   // its name
  std::string refusal;  // empty: usable
};

// The number of the proposal that has a name.
std::optional<int64_t> find_engine(const fe::graph::Graph& graph, const std::string& wanted) {
  std::string name;
  for (int64_t i = 0; i < graph.get_execution_plan_count(); ++i)
    if (graph.get_plan_name_at_index(i, name).is_good() && name == wanted) return i;
  return {};
}

// Proposals of engines, and a plan of one of them. A name that is not proposed reaches cuDNN nowhere: it may come from a file.
fe::error_t build_plan(fe::graph::Graph& graph, cudnnHandle_t handle, const std::string& wanted) {
  if (auto status = graph.validate(); status.is_bad()) return status;
  if (auto status = graph.build_operation_graph(handle); status.is_bad()) return status;
  if (auto status = graph.create_execution_plans({fe::HeurMode_t::A}); status.is_bad()) return status;
  const std::optional<int64_t> proposal = wanted.empty() ? std::nullopt : find_engine(graph, wanted);
  if (proposal)
    if (auto status = graph.build_plan_at_index(*proposal); status.is_good()) return status;
  if (auto status = graph.check_support(); status.is_bad()) return status;
  return graph.build_plans();
}

class Builder {
 public:
  Builder(fe::graph::Graph& graph, const AttentionShape& s, int64_t batch) : graph_(graph), s_(s), batch_(batch) {
    graph_.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    q_ = tensor(kQ, "q", s.heads, s.qkv_width());
    k_ = tensor(kK, "k", s.kv_heads, s.qkv_width());
    v_ = tensor(kV, "v", s.kv_heads, s.qkv_width());
  }

  void forward() {
    auto [out, lse] = graph_.sdpa(
        q_, k_, v_,
        fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true).set_causal_mask(true).set_attn_scale(scale()));
    output(out, kOut, s_.heads, s_.out_width());
    lse->set_output(true).set_uid(kLse).set_data_type(fe::DataType_t::FLOAT).set_dim(lse_dims()).set_stride(lse_strides());
  }

  void backward(bool deterministic) {
    const TensorPtr out = tensor(kOut, "out", s_.heads, s_.out_width()), dout = tensor(kDout, "dout", s_.heads, s_.out_width());
    const TensorPtr lse = graph_.tensor(fe::graph::Tensor_attributes()
                                            .set_name("lse")
                                            .set_uid(kLse)
                                            .set_data_type(fe::DataType_t::FLOAT)
                                            .set_dim(lse_dims())
                                            .set_stride(lse_strides()));
    auto [dq, dk, dv] = graph_.sdpa_backward(q_, k_, v_, out, dout, lse,
                                             fe::graph::SDPA_backward_attributes()
                                                 .set_name("attention_bwd")
                                                 .set_causal_mask(true)
                                                 .set_attn_scale(scale())
                                                 .set_deterministic_algorithm(deterministic));
    output(dq, kDq, s_.heads, s_.qkv_width());
    output(dk, kDk, s_.kv_heads, s_.qkv_width());
    output(dv, kDv, s_.kv_heads, s_.qkv_width());
  }

 private:
  float scale() const { return static_cast<float>(1 / std::sqrt(static_cast<double>(s_.head_dim))); }
  Dims lse_dims() const { return {batch_, s_.heads, s_.seq, 1}; }
  Dims lse_strides() const { return {s_.heads * s_.seq, s_.seq, 1, 1}; }
  TensorPtr tensor(Uid uid, const char* name, int64_t heads, int64_t row) {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_name(name)
                             .set_uid(uid)
                             .set_dim({batch_, heads, s_.seq, s_.head_dim})
                             .set_stride(strides(s_.seq, row, s_.head_dim)));
  }
  void output(const TensorPtr& t, Uid uid, int64_t heads, int64_t row) {
    t->set_output(true).set_uid(uid).set_dim({batch_, heads, s_.seq, s_.head_dim}).set_stride(strides(s_.seq, row, s_.head_dim));
  }

  fe::graph::Graph& graph_;
  const AttentionShape& s_;
  int64_t batch_;
  TensorPtr q_, k_, v_;
};

std::byte* at(const Tensor& t, int64_t element) { return t.as<std::byte>() + element * static_cast<int64_t>(size_of(t.dtype)); }

}  // namespace

struct CudnnAttention::Library {
  cudnnHandle_t handle = nullptr;
  bool deterministic = true;
  Preferred preferred;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, bool>;
  std::map<Key, std::unique_ptr<Plan>> plans;

  ~Library() {
    plans.clear();
    if (handle != nullptr) fe::detail::destroy_handle(handle);
  }

  Plan& plan(const AttentionShape& s, bool backward) {
    std::unique_ptr<Plan>& p = plans[Key{s.batch, s.seq, s.heads, s.kv_heads, s.head_dim, backward}];
    if (p == nullptr) p = build(s, backward);
    return *p;
  }

  std::unique_ptr<Plan> build(const AttentionShape& s, bool backward) const {
    auto p = std::make_unique<Plan>();
    if (backward && deterministic) p->parts = cudnn_parts(s);
    try {
      Builder builder(p->graph, s, s.batch / p->parts);
      backward ? builder.backward(deterministic) : builder.forward();
      auto status = build_plan(p->graph, handle, preferred ? preferred(s, backward) : "");
      if (status.is_bad()) {
        p->refusal = status.get_message();
      } else {
        p->workspace = p->graph.get_workspace_size();
        if (p->graph.get_plan_name(p->engine).is_bad()) p->engine = "unnamed";
      }
    } catch (const std::exception& e) {
      p->refusal = e.what();
    }
    return p;
  }

  void execute(const Plan& p, std::unordered_map<int64_t, void*> pointers, const Tensor& scratch) const {
    HLAT_CHECK(p.refusal.empty(), "cuDNN refused this attention: {}", p.refusal);
    HLAT_CHECK(p.workspace == 0 || (scratch.defined() && scratch.bytes() >= static_cast<size_t>(p.workspace)),
               "cuDNN wants {} bytes of scratch", p.workspace);
    auto status = p.graph.execute(handle, pointers, scratch.data);
    if (status.is_bad()) fail("cuDNN: {}", status.get_message());
  }
};

CudnnAttention::CudnnAttention(cudaStream_t stream, bool deterministic) {
  if (!load_error().empty()) {
    describe_ = "without cuDNN: " + load_error();
    return;
  }
  try {
    auto library = std::make_unique<Library>();
    library->deterministic = deterministic;
    if (fe::detail::create_handle(&library->handle) != CUDNN_STATUS_SUCCESS ||
        fe::detail::set_stream(library->handle, stream) != CUDNN_STATUS_SUCCESS)
      throw std::runtime_error("no handle for this device");
    describe_ = "cuDNN " + fe::detail::get_backend_version_string();
    library_name_ = fmt::format("{}, frontend {}.{}.{}", describe_, CUDNN_FRONTEND_MAJOR_VERSION, CUDNN_FRONTEND_MINOR_VERSION,
                                CUDNN_FRONTEND_PATCH_VERSION);
    library_ = std::move(library);
  } catch (const std::exception& e) {
    describe_ = fmt::format("without cuDNN: {}", e.what());
  }
}

CudnnAttention::~CudnnAttention() = default;

std::string CudnnAttention::refusal(const AttentionShape& s, bool backward) {
  return library_ == nullptr ? describe_ : library_->plan(s, backward).refusal;
}

std::string CudnnAttention::engine(const AttentionShape& s, bool backward) {
  return library_ == nullptr ? "" : library_->plan(s, backward).engine;
}

void CudnnAttention::prefer(Preferred preferred) {
  if (library_ != nullptr) library_->preferred = std::move(preferred);
}

std::optional<size_t> CudnnAttention::scratch(const AttentionShape& s, DType dtype, bool backward) {
  if (library_ == nullptr || dtype != DType::bf16) return {};
  const Plan& p = library_->plan(s, backward);
  if (!p.refusal.empty()) return {};
  return static_cast<size_t>(p.workspace);
}

void CudnnAttention::forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch) {
  library_->execute(library_->plan(s, false),
                    {{kQ, qkv.data},
                     {kK, at(qkv, s.heads * s.head_dim)},
                     {kV, at(qkv, (s.heads + s.kv_heads) * s.head_dim)},
                     {kOut, out.data},
                     {kLse, lse.data}},
                    scratch);
}

void CudnnAttention::backward(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch) {
  const Plan& p = library_->plan(s, true);
  const int64_t tokens = s.tokens() / p.parts, k = s.heads * s.head_dim, v = k + s.kv_heads * s.head_dim;
  for (int64_t part = 0; part < p.parts; ++part) {
    const int64_t qkv_at = part * tokens * s.qkv_width(), out_at = part * tokens * s.out_width();
    library_->execute(p,
                      {{kQ, at(qkv, qkv_at)},
                       {kK, at(qkv, qkv_at + k)},
                       {kV, at(qkv, qkv_at + v)},
                       {kOut, at(out, out_at)},
                       {kDout, at(dout, out_at)},
                       {kLse, at(lse, part * tokens * s.heads)},
                       {kDq, at(dqkv, qkv_at)},
                       {kDk, at(dqkv, qkv_at + k)},
                       {kDv, at(dqkv, qkv_at + v)}},
                      scratch);
  }
}

}  // namespace hlat
