#include "record/metrics.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_text.h"

namespace hlat {

void put_number(nlohmann::ordered_json& object, const char* name, double value) {
  object[name] = value;  // null where it is not finite
  if (!std::isfinite(value)) object["not_finite"][name] = fmt::format("{}", value);
}

MetricsWriter::MetricsWriter(const std::filesystem::path& file) : file_(file, OutputFile::Mode::append) {}

namespace {

template <class Metrics>
std::string line_of(const Metrics& m, const nlohmann::ordered_json& more = nlohmann::ordered_json::object()) {
  nlohmann::ordered_json line{{"step", m.step}, {"tokens", m.tokens}};
  line.update(more);
  scalars(m, [&](const char* name, double value) { put_number(line, name, value); });
  return json_text(line) + "\n";
}

}  // namespace

// A step that was not computed has a null for its loss: what reads losses finds the key in every line.
void MetricsWriter::write(const StepMetrics& m) { file_.write(m.computed ? line_of(m) : line_of(m, {{"loss", nullptr}})); }

void MetricsWriter::write(const TaskMetrics& m) { file_.write(line_of(m)); }

}  // namespace hlat
