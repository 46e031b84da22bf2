// Figures of links, fitted to times that the model itself gives.
#include "bench/link_rates.h"

#include <gtest/gtest.h>

#include "plan/collective_time.h"

namespace hlat::test {
namespace {

Machine linked(double latency, double rate, double sum) {
  Machine m;
  m.links.node.latency.set(latency, "a test", "now");
  m.links.node.bytes_per_s.set(rate, "a test", "now");
  m.links.sum_bytes_per_s.set(sum, "a test", "now");
  return m;
}

TEST(LinkRates, FitFindsTheModelsFigures) {
  const Machine m = linked(5e-6, 3e9, 8e9);
  for (const int ranks : {2, 3, 8}) {
    const GroupPlace group{.size = ranks, .nodes = 1, .per_node = ranks, .sharing = 1};
    std::vector<CollectiveTime> on_cores, on_devices;
    for (const CommKind kind : {CommKind::all_gather, CommKind::reduce_scatter})
      for (double bytes = 1024; bytes <= 1 << 26; bytes *= 4) {
        on_cores.push_back({kind, bytes, host_collective(m, kind, bytes, group)});
        on_devices.push_back({kind, bytes, device_collective(m, kind, bytes, group)});
      }
    const LinkFit cores = fit_links(on_cores, ranks, true), devices = fit_links(on_devices, ranks, false);
    for (const LinkFit& fit : {cores, devices}) {
      EXPECT_NEAR(fit.latency, 5e-6, 1e-10);
      EXPECT_NEAR(fit.bytes_per_s, 3e9, 1e4);
    }
    EXPECT_NEAR(cores.sum_bytes_per_s, 8e9, 1e6);
    EXPECT_EQ(devices.sum_bytes_per_s, 0);
  }
}

// Times that fall with the size, as noise may have them, give no negative figure.
TEST(LinkRates, FitHasNoNegativeFigures) {
  const LinkFit fit = fit_links({{CommKind::all_gather, 1e3, 1e-3}, {CommKind::all_gather, 1e6, 0.9e-3}}, 2, false);
  EXPECT_GT(fit.latency, 0);
  EXPECT_GE(fit.bytes_per_s, 0);
}

}  // namespace
}  // namespace hlat::test
