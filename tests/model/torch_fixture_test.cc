// Loss and every gradient equal those of a Llama written independently in PyTorch (tools/make_torch_fixture.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/host_memory.h"
#include "support/paths.h"
#include "support/real_run.h"
#include "support/ref_run.h"

namespace hlat {
namespace {

nlohmann::json fixture() {
  std::ifstream in(test::source_path("tests/fixtures/torch_llama.json"));
  return nlohmann::json::parse(in);
}

Config config_of(const nlohmann::json& c) {
  Config config;
  config.model = {.preset = {},
                  .layers = c["layers"],
                  .hidden = c["hidden"],
                  .heads = c["heads"],
                  .kv_heads = c["kv_heads"],
                  .ffn = c["ffn"],
                  .vocab = c["vocab"]};
  config.model.rope_theta = c["theta"];
  config.model.norm_eps = c["eps"];
  config.model.tied = c["tied"];
  config.train.seq_len = c["seq"];
  config.train.global_batch = config.train.micro_batch = c["batch"];
  config.train.loss_chunk = 7;
  return config;
}

// Host memory shaped like a tensor of the device.
struct Host {
  HostMemory memory;
  Tensor copy_of(const Tensor& t, const std::vector<double>& values) {
    const Tensor copy = memory.zeros(t.dtype, t.shape);
    if (!values.empty()) from_f64(copy, values);
    return copy;
  }
};

// tolerance: of the largest gradient of a tensor.
void compare(const nlohmann::json& expected, const Config& config, Executor& executor, Device& device, double tolerance) {
  const ParamStore& params = executor.params();
  Host host;
  ASSERT_EQ(static_cast<size_t>(params.size()), expected["gradients"].size());
  for (ParamId id = 0; id < params.size(); ++id) {
    std::vector<double> w(static_cast<size_t>(params.weight(id).numel()));
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = static_cast<float>((params.spec(id).init_std == 0 ? 1.0 : 0.0) + 0.3 * std::sin(0.37 * static_cast<double>(i) + id));
    device.upload(params.weight(id), host.copy_of(params.weight(id), w).data);
  }
  const int64_t n = config.train.micro_batch * config.train.seq_len;
  std::vector<int32_t> ids, targets;
  for (int64_t i = 0; i < n; ++i) {
    ids.push_back(static_cast<int32_t>((7 * i + 3) % config.model.vocab));
    targets.push_back(static_cast<int32_t>((5 * i + 1) % config.model.vocab));
  }
  micro_step(executor, ids, targets, false);
  double loss = 0;
  device.download(&loss, executor.loss_sum());
  EXPECT_NEAR(loss / static_cast<double>(n), expected["loss"].get<double>(), tolerance);
  for (ParamId id = 0; id < params.size(); ++id) {
    const auto want = expected["gradients"][params.spec(id).name].get<std::vector<double>>();
    const Tensor grad = host.copy_of(params.grad(id), {});
    device.download(grad.data, params.grad(id));
    const auto have = to_f64(grad);
    ASSERT_EQ(want.size(), have.size());
    double largest = 0;
    for (const double g : want) largest = std::max(largest, std::abs(g));
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], tolerance * largest) << params.spec(id).name << "[" << i << "]";
  }
}

TEST(TorchFixture, ReferenceBackendAgreesToTheDigitsOfTheFile) {
  for (const auto& k : fixture()) {
    const Config config = config_of(k["config"]);
    RefRun run(config);
    compare(k, config, run.executor(), run.device(), 1e-9);
  }
}

// f32 through two blocks, where the smooth weights of the fixture make large terms cancel in the norm gradients: the worst
// element is off by 2.1e-5 of its tensor's largest. A wrong formula is off by much more than 1e-4.
class TorchFixtureOn : public ::testing::TestWithParam<TestDevice> {};

TEST_P(TorchFixtureOn, AgreesInF32) {
  for (const auto& k : fixture()) {
    const Config config = config_of(k["config"]);
    RealRun run(config, GetParam());
    compare(k, config, run.executor(), run.device(), 1e-4);
  }
}

std::vector<TestDevice> all_devices() {
  std::vector<TestDevice> devices = test_devices();
  for (const std::string& isa : available_isas()) devices.push_back(cpu_device(isa));
  return devices;
}

INSTANTIATE_TEST_SUITE_P(Devices, TorchFixtureOn, ::testing::ValuesIn(all_devices()), [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace hlat
