#include "plan/machine.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ops/gpu_facts.h"

namespace hlat {

std::string form_text(uint8_t form) {
  return fmt::format("{}{}{}{}", (form & 1) != 0 ? 't' : 'n', (form & 2) != 0 ? 't' : 'n', (form & 4) != 0 ? "+" : "",
                     (form & 8) != 0 ? " fast" : "");
}

std::string_view name_of(PriceModel model) {
  constexpr std::array<std::string_view, kPriceModels> names = {"on_demand", "reserved_1y", "reserved_3y", "spot"};
  return names[static_cast<size_t>(model)];
}

std::vector<Figure*> figures_of(Machine& m) {
  return {&m.memory,
          &m.host_memory,
          &m.memory_bandwidth,
          &m.peak_bf16,
          &m.peak_f32,
          &m.peak_fp8,
          &m.context,
          &m.nccl,
          &m.rates.launch,
          &m.rates.matmul_share,
          &m.rates.fp8_share,
          &m.rates.attention_share,
          &m.rates.bandwidth_share,
          &m.rates.thread_share.products,
          &m.rates.thread_share.attention,
          &m.rates.thread_share.others,
          &m.links.node.latency,
          &m.links.node.bytes_per_s,
          &m.links.network.latency,
          &m.links.network.bytes_per_s,
          &m.links.overlap_cost,
          &m.links.sum_bytes_per_s,
          &m.disk_write,
          &m.disk_read,
          &m.step_overhead,
          &m.power,
          &m.node_mtbf,
          &m.restart};
}

std::vector<const Figure*> figures_of(const Machine& m) {
  const std::vector<Figure*> all = figures_of(const_cast<Machine&>(m));
  return {all.begin(), all.end()};
}

bool Machine::multiplies_fp8() const {
  if (cores > 0) return false;
  return capability > 0 ? hlat::multiplies_fp8(gpu_of_capability(device, capability)) : peak_fp8.known();
}

double price_of(const Machine& m, PriceModel model, const std::string& region) {
  std::vector<std::string> there;
  for (const Price& p : m.prices) {
    if (p.model == model && (region.empty() || p.region == region)) return m.need(p.dollars_per_hour);
    there.push_back(fmt::format("{} in {}", name_of(p.model), p.region));
  }
  const std::string asked = region.empty() ? std::string(name_of(model)) : fmt::format("{} in {}", name_of(model), region);
  fail<UsageError>("{}: prices has none for {}; {}. Add an item {{model: {}, region: {}, dollars_per_hour, source, date}}", m.file, asked,
                   there.empty() ? "the list is empty" : fmt::format("there is {}", fmt::join(there, ", ")), name_of(model),
                   region.empty() ? "REGION" : region);
}

}  // namespace hlat
