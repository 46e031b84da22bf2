#include "record/metrics.h"

#include <nlohmann/json.hpp>

namespace hlat {

MetricsWriter::MetricsWriter(const std::filesystem::path& file) : file_(file, OutputFile::Mode::append) {}

void MetricsWriter::write(const StepMetrics& m) {
  nlohmann::ordered_json line{{"step", m.step}, {"tokens", m.tokens}};
  scalars(m, [&](const char* name, double value) { line[name] = value; });  // a non-finite value becomes null
  file_.write(line.dump() + "\n");
}

}  // namespace hlat
