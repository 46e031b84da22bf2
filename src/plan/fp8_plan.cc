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

std::string fp8_text(const Config& config) {
  if (!precision_of(config).fp8) return {};
  const Fp8Plan plan = fp8_plan(config);
  std::string s = fmt::format("FP8: products with {} parameters", format_count(static_cast<double>(plan.parameters)));
  if (!plan.wide_names.empty()) s += fmt::format("; in bf16, as no multiples of {}: {}", kFp8Grain, fmt::join(plan.wide_names, ", "));
  return s + "\n";
}

}  // namespace hlat
