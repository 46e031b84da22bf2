// metrics.jsonl and eval.jsonl as curves: the one reader of whole files, for reports and studies. The file may be of a run under way: part
// of a line at its end is left out. Where a step comes again, as behind a restart whose lines were not cut, the last writing counts, and
// what stood behind it is of no run any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hlat {

struct Curve {
  std::vector<int64_t> step;  // ascending
  std::vector<double> value;  // NaN: not finite or not known

  size_t size() const { return step.size(); }
  bool has_values() const;  // one that is finite
  void add(int64_t s, double v) { step.push_back(s), value.push_back(v); }
  void cut_from(int64_t first);                                         // leaves out this step and all behind it
  std::vector<double> values_at(const std::vector<int64_t>& at) const;  // at ascending steps; NaN where it has no such step
};

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
  int64_t damaged = 0;                     // lines that are no record of a step, which has "step" and "tokens"

  const Curve& curve(const std::string& key) const;  // one without points where there is none
};

RunCurves read_curves(const std::filesystem::path& file);  // no file: nothing

// Of the finite values: the median, of an even number the mean of the two in the middle; NaN: there is none.
double finite_median(std::vector<double> values);
double usual_value(const std::vector<double>& by_step);  // the same without the first, which starts libraries, where there are others

}  // namespace hlat
