#include "report/source_shares.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hlat {

namespace {

struct RowCounts {
  std::vector<int64_t> step;                        // that tell their rows
  std::map<std::string, std::vector<double>> rows;  // by source
};

RowCounts row_counts(const RunCurves& curves) {
  RowCounts out;
  for (const auto& [key, curve] : curves.curves)
    if (key.starts_with(kRowsOf)) out.step.insert(out.step.end(), curve.step.begin(), curve.step.end());
  std::sort(out.step.begin(), out.step.end());
  out.step.erase(std::unique(out.step.begin(), out.step.end()), out.step.end());
  for (const auto& [key, curve] : curves.curves) {
    if (!key.starts_with(kRowsOf)) continue;
    std::vector<double> own = curve.values_at(out.step);
    std::replace_if(
        own.begin(), own.end(), [](double v) { return !(std::isfinite(v) && v > 0); }, 0.0);
    out.rows[key.substr(kRowsOf.size())] = std::move(own);
  }
  return out;
}

}  // namespace

SourceShares source_shares(const RunCurves& curves, size_t most) {
  const RowCounts counts = row_counts(curves);
  const size_t n = counts.step.size(), stretches = std::min(n, most);
  SourceShares out;
  for (size_t k = 0; k < stretches; ++k) {
    const size_t begin = k * n / stretches, end = (k + 1) * n / stretches;
    out.step.push_back(counts.step[end - 1]);
    double all = 0;
    for (const auto& [source, rows] : counts.rows) {
      double own = 0;
      for (size_t i = begin; i < end; ++i) own += rows[i];
      out.shares[source].push_back(own);
      all += own;
    }
    for (auto& [source, shares] : out.shares) shares.back() = all > 0 ? shares.back() / all : std::numeric_limits<double>::quiet_NaN();
  }
  return out;
}

}  // namespace hlat
