#include "record/metrics.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_text.h"

namespace hlat {

void put_number(nlohmann::ordered_json& object, const char* name, double value) {
  object[name] = value;  // null where it is not finite
  if (!std::isfinite(value)) object["not_finite"][name] = fmt::format("{}", value);
}

nlohmann::ordered_json monitors_json(const Monitors& m) {
  nlohmann::ordered_json j = nlohmann::ordered_json::object();
  monitor_values(
      m, [&](const char* name, double value) { put_number(j, name, value); },
      [&](const char* name, const std::vector<double>& values) {
        j[name] = nlohmann::ordered_json::array();
        for (size_t i = 0; i < values.size(); ++i) {
          j[name].push_back(values[i]);
          if (!std::isfinite(values[i])) j["not_finite"][fmt::format("{}/{}", name, i)] = fmt::format("{}", values[i]);
        }
      });
  if (!m.source_loss.empty()) j["source_loss"] = nlohmann::ordered_json::object();
  for (const auto& [source, loss] : m.source_loss) {
    j["source_loss"][source] = loss;
    if (!std::isfinite(loss)) j["not_finite"]["source_loss/" + source] = fmt::format("{}", loss);
  }
  return j;
}

MetricsWriter::MetricsWriter(const std::filesystem::path& file) : file_(file, OutputFile::Mode::append) {}

namespace {

template <class Metrics>
std::string line_of(const Metrics& m, const nlohmann::ordered_json& more = nlohmann::ordered_json::object(),
                    const nlohmann::ordered_json& monitors = {}) {
  nlohmann::ordered_json line{{"step", m.step}, {"tokens", m.tokens}};
  if (more.is_object()) line.update(more);
  scalars(m, [&](const char* name, double value) { put_number(line, name, value); });
  if (!monitors.is_null()) line["monitors"] = monitors;
  return json_text(line) + "\n";
}

}  // namespace

// A step that was not computed has a null for its loss: what reads losses finds the key in every line.
void MetricsWriter::write(const StepMetrics& m) {
  if (m.computed && m.monitors) return file_.write(line_of(m, {}, monitors_json(*m.monitors)));
  file_.write(m.computed ? line_of(m) : line_of(m, {{"loss", nullptr}}));
}

void MetricsWriter::write(const TaskMetrics& m) { file_.write(line_of(m)); }

}  // namespace hlat
