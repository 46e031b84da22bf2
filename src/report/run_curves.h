// metrics.jsonl and eval.jsonl as curves. The file may be of a run under way: part of a line at its end is left out. Where a step comes
// again, as behind a restart whose lines were not cut, the last writing counts, and what stood behind it is of no run any more.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/curve.h"

namespace hlat {

// A list by part of the model or of the sequence, at the steps that have it.
struct ListCurve {
  std::vector<int64_t> step;
  std::vector<std::vector<double>> values;  // by step

  void cut_from(int64_t first);
};

struct RunCurves {
  std::vector<int64_t> step, tokens;       // of all lines
  std::map<std::string, Curve> curves;     // by key: "loss", "val_loss/web"; of the monitors "monitors/drift", "monitors/source_loss/web"
  std::map<std::string, ListCurve> lists;  // of the monitors: "grad_norm"
  int64_t damaged = 0;                     // lines that are no record of a step

  const Curve& curve(const std::string& key) const;  // one without points where there is none
};

RunCurves read_curves(const std::filesystem::path& file);  // no file: nothing

}  // namespace hlat
