// What came of a study, from its runs' folders: figures of each run, and of each row their mean and spread over seeds. Figures of runs that
// have not ended, or are of another config than the study's, are left out of the rows; figures of a run with a numerical failure are those
// of the steps before, without a final loss.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/curve.h"
#include "study/grid.h"
#include "study/paired.h"
#include "study/standing.h"

namespace hlat {

// One figure of a run, and how tables show that of a row.
struct StudyColumn {
  enum class Shown : uint8_t { loss, number, count, bytes, seconds, share };
  std::string_view key;      // in results.json, `collect` and the heads of tables
  std::string_view meaning;  // in results.md
  Shown shown = Shown::number;
  bool largest = false;  // a row shows the largest of its runs instead of the mean
};
const std::vector<StudyColumn>& study_columns();      // in the order of the table
std::vector<std::string_view> collectable_columns();  // these, and those that tables make of several runs

struct RunFigures {
  std::string name, row;
  RunStanding standing;
  int64_t steps = 0;                           // that it is to have; 0: not known
  std::map<std::string, double> figures = {};  // by key of a column; one that is not known is not there
  std::optional<int64_t> diverged = {};        // at this step
  std::map<std::string, int64_t> alarms = {};  // by rule
  RunCurve curve = {};
  // Of one that is finished: what they say is of an earlier part of it, and its final loss is not known.
  bool metrics_end_early() const { return standing.standing == Standing::finished && standing.step < steps; }
};

// Mean and sample standard deviation over the runs that have a figure.
struct SeedSpread {
  size_t count = 0;
  double mean = 0, deviation = 0, least = 0, most = 0;  // deviation: NaN for one run
};
SeedSpread spread_of(const std::vector<double>& values);

struct RowResult {
  std::string name, baseline;                      // baseline: the row that it is compared with; empty: none
  std::map<std::string, std::string> points = {};  // by axis, without seeds
  size_t runs = 0, ended = 0;
  std::map<std::string, SeedSpread> figures = {};
  std::map<std::vector<size_t>, double> final_loss = {};  // by the points of the axes of seeds
  // Of the final loss against that of the baseline: the mean difference over pairs of one seed, of the seeds that both rows have, or where
  // they share none the difference of the means. In nats, and as an effect size, in units of the pooled standard deviation over all seeds
  // of both rows; the latter is not known with one run each.
  std::optional<double> gap = {}, gap_spreads = {};
  size_t gap_pairs = 0;
  std::optional<Interval> gap_interval = {};  // of two pairs or more: 95 % confidence
  std::vector<int64_t> diverged = {};         // steps, of those runs that did
  std::map<std::string, int64_t> alarms = {};
};

struct StudyResults {
  std::string study, baseline;
  std::vector<RunFigures> runs = {};
  std::vector<RowResult> rows = {};
};

StudyResults read_results(const Study& study, const std::vector<PlannedRun>& runs);

// Rows of the chosen runs of `all` alone. A row whose baseline is not chosen is compared with the baseline's row in `all`.
StudyResults results_of(const Study& study, const StudyResults& all, const std::vector<PlannedRun>& chosen);

nlohmann::ordered_json results_json(const StudyResults& results);

}  // namespace hlat
