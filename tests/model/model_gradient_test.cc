// The hand-written backward of every layer and of the whole model against complex-step derivatives of an independent
// scalar reference, element by element. The complex step (h = 1e-30) has no cancellation, so both sides are exact to
// double rounding: sums of a few hundred terms give 1e-14 to 1e-13, and 1e-12 of the tensor's largest gradient is the limit.
#include <gtest/gtest.h>

#include <complex>

#include "support/host_memory.h"
#include "support/real_run.h"
#include "support/ref_run.h"
#include "support/scalar_llama.h"

namespace hlat {
namespace {

using Complex = std::complex<double>;
constexpr double kStep = 1e-30;
constexpr double kTolerance = 1e-12;

struct Case {
  const char* name;
  int heads, kv_heads;
  bool tied;
  Recompute recompute;
  int loss_chunk;
};

Config model_config(const Case& k) {
  Config c;
  c.model = {.preset = {}, .layers = 2, .hidden = 12, .heads = k.heads, .kv_heads = k.kv_heads, .ffn = 7, .vocab = 9};
  c.model.tied = k.tied;
  c.model.init_std = 0.4;
  c.train.seq_len = 5;
  c.train.global_batch = c.train.micro_batch = 2;
  c.train.loss_chunk = k.loss_chunk;
  c.train.recompute = k.recompute;
  return c;
}

scalar::Config scalar_config(const Config& c) {
  return {.layers = static_cast<int>(c.model.layers),
          .hidden = static_cast<int>(c.model.hidden),
          .heads = static_cast<int>(c.model.heads),
          .kv_heads = static_cast<int>(c.model.kv()),
          .head_dim = static_cast<int>(c.model.head_dim()),
          .ffn = static_cast<int>(c.model.ffn),
          .vocab = static_cast<int>(c.model.vocab),
          .theta = c.model.rope_theta,
          .eps = c.model.norm_eps,
          .tied = c.model.tied};
}

// Norm weights start at one, where errors in them could hide: all weights are drawn.
void draw_weights(const ParamStore& params) {
  for (ParamId id = 0; id < params.size(); ++id) {
    auto values = normals(params.weight(id).numel(), params.spec(id).name);
    for (double& v : values) v = params.spec(id).init_std == 0 ? 1 + 0.3 * v : 0.4 * v;
    from_f64(params.weight(id), values);
  }
}

scalar::Params<Complex> copy_weights(const scalar::Config& s, const ParamStore& params) {
  scalar::Params<Complex> p;
  p.layers.resize(static_cast<size_t>(s.layers));
  ParamId id = 0;
  scalar::for_each_param(s, p, [&](const char*, scalar::Vec<Complex>& v) {
    const auto values = to_f64(params.weight(id++));
    v.assign(values.begin(), values.end());
  });
  return p;
}

class ModelGradient : public testing::TestWithParam<Case> {};

TEST_P(ModelGradient, EqualsTheComplexStepInEveryElement) {
  const Config config = model_config(GetParam());
  RefRun run(config);
  const ParamStore& params = run.executor().params();
  draw_weights(params);
  std::vector<int32_t> ids = {3, 1, 4, 1, 5, 0, 2, 6, 5, 8}, targets = {1, 4, 1, 5, 0, 2, 6, 5, 8, 3};
  micro_step(run.executor(), ids, targets, false);

  const scalar::Config s = scalar_config(config);
  auto p = copy_weights(s, params);
  const auto loss = [&] { return scalar::loss(s, p, ids, targets, 2, 5); };
  EXPECT_NEAR(*run.executor().loss_sum().as<double>() / 10, loss().real(), 1e-13);
  ParamId id = 0;
  scalar::for_each_param(s, p, [&](const char* name, scalar::Vec<Complex>& v) {
    const auto gradient = to_f64(params.grad(id++));
    double largest = 0;
    for (const double g : gradient) largest = std::max(largest, std::abs(g));
    EXPECT_GT(largest, 1e-6) << name << ": nothing is tested";
    for (size_t i = 0; i < v.size(); ++i) {
      v[i] += Complex(0, kStep);
      EXPECT_NEAR(gradient[i], loss().imag() / kStep, kTolerance * largest) << name << "[" << i << "]";
      v[i] = v[i].real();
    }
  });
  EXPECT_EQ(id, params.size());
}

INSTANTIATE_TEST_SUITE_P(Shapes, ModelGradient,
                         testing::Values(Case{"mha_untied", 3, 3, false, {}, 100},
                                         Case{"gqa_untied", 6, 2, false, {RecomputeKind::selective, 0}, 3},
                                         Case{"mqa_tied", 3, 1, true, {RecomputeKind::full, 0}, 100},
                                         Case{"gqa_tied_every", 6, 3, true, {RecomputeKind::full, 2}, 7}),
                         [](const auto& test) { return test.param.name; });

TEST(ModelGradient, AccumulatesOverMicroBatches) {
  Config config = model_config({"", 3, 1, true, {}, 4});
  RefRun run(config);
  const ParamStore& params = run.executor().params();
  draw_weights(params);
  std::vector<int32_t> ids = {3, 1, 4, 1, 5, 0, 2, 6, 5, 8}, targets = {1, 4, 1, 5, 0, 2, 6, 5, 8, 3};
  micro_step(run.executor(), ids, targets, false);
  std::vector<std::vector<double>> once;
  for (ParamId id = 0; id < params.size(); ++id) once.push_back(to_f64(params.grad(id)));
  micro_step(run.executor(), ids, targets, true);
  for (ParamId id = 0; id < params.size(); ++id) {
    const auto twice = to_f64(params.grad(id));
    for (size_t i = 0; i < twice.size(); ++i) ASSERT_NEAR(twice[i], 2 * once[static_cast<size_t>(id)][i], 1e-13) << params.spec(id).name;
  }
}

// One layer alone: for a random dy, the gradient of sum(dy * layer(x)) with respect to x and the layer's weights.
class LayerGradient : public testing::Test {
 protected:
  static constexpr int kBatch = 2, kSeq = 5;
  Config config = model_config({"", 6, 2, false, {RecomputeKind::selective, 0}, 100});
  scalar::Config s = scalar_config(config);
  Mesh mesh = one_rank(config);
  HostMemory host;
  Memory memory;
  std::vector<std::byte> blocks[kPurposes];

  LayerGradient() {
    for (size_t i = 0; i < kPurposes; ++i) {
      blocks[i].resize(1 << 20);
      memory.set(static_cast<Purpose>(i), Region(static_cast<Purpose>(i), blocks[i].data(), blocks[i].size()));
    }
  }

  // forward(ctx, x, y) and backward(ctx, x, dy, dx) of the layer against `reference`, a function of x and all weights.
  template <class Forward, class Backward, class Reference>
  void check(std::vector<ParamSpec> specs, const Forward& forward, const Backward& backward, const Reference& reference) {
    RefOps ops(memory[Purpose::temp]);
    ParamStore params(std::move(specs), f64_precision(), memory, {}, ParamUse::training);
    draw_weights(params);
    Tape tape(memory, config.train.recompute);
    const AttentionShape shape{.batch = kBatch, .seq = kSeq, .heads = s.heads, .kv_heads = s.kv_heads, .head_dim = s.head_dim};
    const Tensor rope = host.zeros(DType::f64, {kSeq, s.head_dim});
    ops.rope_table(rope, {.theta = s.theta});
    Ctx ctx{.ops = ops,
            .memory = memory,
            .params = params,
            .tape = tape,
            .tp = {mesh.along(Axis::tp), false},
            .attention = shape,
            .rope = rope,
            .norm_eps = s.eps,
            .accumulate = false};
    const int64_t n = kBatch * kSeq;
    const Tensor x = host.zeros(DType::f64, {n, s.hidden}), y = host.zeros(DType::f64, {n, s.hidden}),
                 dx = host.zeros(DType::f64, {n, s.hidden});
    const auto x_values = normals(x.numel(), "x"), dy_values = normals(x.numel(), "dy");
    from_f64(x, x_values);
    const Tensor dy = host.zeros(DType::f64, {n, s.hidden});
    from_f64(dy, dy_values);
    tape.begin_forward({});
    forward(ctx, x, y);
    tape.begin_recompute({});
    backward(ctx, x, dy, dx);

    scalar::Vec<Complex> xc(x_values.begin(), x_values.end());
    std::vector<scalar::Vec<Complex>> w;
    for (ParamId id = 0; id < params.size(); ++id) {
      const auto values = to_f64(params.weight(id));
      w.emplace_back(values.begin(), values.end());
    }
    const auto objective = [&] {
      const scalar::Vec<Complex> out = reference(xc, w);
      Complex sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dy_values[i];
      return sum;
    };
    const auto compare = [&](scalar::Vec<Complex>& v, const std::vector<double>& gradient, const std::string& name) {
      double largest = 0;
      for (const double g : gradient) largest = std::max(largest, std::abs(g));
      for (size_t i = 0; i < v.size(); ++i) {
        v[i] += Complex(0, kStep);
        EXPECT_NEAR(gradient[i], objective().imag() / kStep, kTolerance * largest) << name << "[" << i << "]";
        v[i] = v[i].real();
      }
    };
    compare(xc, to_f64(dx), "x");
    for (ParamId id = 0; id < params.size(); ++id) compare(w[static_cast<size_t>(id)], to_f64(params.grad(id)), params.spec(id).name);
  }

  // A layer of the usual form: forward(ctx, x, y), backward(ctx, x, dy, dx) after the recompute.
  template <class Layer, class Reference>
  void check_layer(const Layer& layer, std::vector<ParamSpec> specs, const Reference& reference) {
    check(
        std::move(specs), [&](Ctx& ctx, Tensor x, Tensor y) { layer.forward(ctx, x, y); },
        [&](Ctx& ctx, Tensor x, Tensor dy, Tensor dx) {
          layer.forward(ctx, x, {});
          layer.backward(ctx, x, dy, dx);
        },
        reference);
  }
};

TEST_F(LayerGradient, Attention) {
  ParamBuilder builder(mesh, false);
  Attention layer;
  layer.declare(builder, "attention", config.model);
  check_layer(layer, builder.take(), [&](const auto& x, const auto& w) {
    const scalar::Heads h{.batch = kBatch, .seq = kSeq, .heads = s.heads, .kv_heads = s.kv_heads, .head_dim = s.head_dim};
    return scalar::linear(scalar::attention(scalar::rope(scalar::linear(x, w[0], s.hidden), h, s.theta), h), w[1], s.heads * s.head_dim);
  });
}

TEST_F(LayerGradient, Mlp) {
  ParamBuilder builder(mesh, false);
  Mlp layer;
  layer.declare(builder, "mlp", config.model);
  check(
      builder.take(),
      [&](Ctx& ctx, Tensor x, Tensor y) {
        const Tensor none = ctx.temp(y.shape, "no residual");
        ctx.ops.fill(none, 0);
        layer.forward(ctx, x, none, y);
      },
      [&](Ctx& ctx, Tensor x, Tensor dy, Tensor dx) {
        layer.forward(ctx, x, {}, {});
        layer.backward(ctx, x, dy, dx);
      },
      [&](const auto& x, const auto& w) { return scalar::linear(scalar::swiglu(scalar::linear(x, w[0], s.hidden), s.ffn), w[1], s.ffn); });
}

TEST_F(LayerGradient, Block) {
  ParamBuilder builder(mesh, false);
  Block layer;
  layer.declare(builder, 0, config.model, true);
  check(
      builder.take(), [&](Ctx& ctx, Tensor x, Tensor y) { layer.forward(ctx, x, y); },
      [&](Ctx& ctx, Tensor x, Tensor dy, Tensor dx) {
        ctx.ops.cast(dx, dy);  // the block works in place
        layer.backward(ctx, x, dx);
      },
      [&](const auto& x, const auto& w) {
        const scalar::Layer<Complex> p{.attn_norm = w[0], .qkv = w[1], .o = w[2], .ffn_norm = w[3], .gate_up = w[4], .down = w[5]};
        return scalar::block(s, p, x, kBatch, kSeq);
      });
}

}  // namespace
}  // namespace hlat
