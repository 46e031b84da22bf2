#include "plan/fp8_plan.h"

#include <fmt/ranges.h>

#include "base/format.h"
#include "base/fp8.h"
#include "config/linear_shapes.h"
#include "param/precision.h"

namespace hlat {

Fp8Plan fp8_plan(const Config& config) {
  Fp8Plan plan;
  if (!precision_of(config).fp8) return plan;
  for (const LinearShape& l : linear_shapes(config.model))
    if (fp8_fits(l.outputs, l.inputs))
      plan.parameters += config.model.layers * l.outputs * l.inputs;
    else
      plan.wide_names.push_back(fmt::format("{} ({} x {})", l.name, l.outputs, l.inputs));
  return plan;
}

std::string fp8_text(const Config& config, const RankPlan& plan) {
  if (!precision_of(config).fp8) return {};
  const Fp8Plan fp8 = fp8_plan(config);
  std::string s = fmt::format("FP8: products with {} parameters", format_count(static_cast<double>(fp8.parameters)));
  if (!fp8.wide_names.empty()) s += fmt::format("; in bf16, as no multiples of {}: {}", kFp8Grain, fmt::join(fp8.wide_names, ", "));
  const size_t saved = plan.memory[Purpose::saved];
  if (plan.fp8_saves > 0) s += fmt::format("; saved {}, {} in bf16", format_bytes(saved), format_bytes(saved + plan.fp8_saves));
  return s + "\n";
}

}  // namespace hlat
