// A study as its YAML file says it: a base config, keys that all runs set, and axes of points; every combination of points is a run.
//
//   name: precision                   how it is called, and its folder in runs/studies
//   base: base-134m.yaml              a config, found from the study's own folder; or sections of keys written out
//   set: {train.tokens: 30000000}     keys of all runs
//   axes:
//     precision:                      an axis with a name, and points with names
//       - {name: sr, set: {train.precision: bf16_sr}}
//     run.seed: [1, 2, 3]             the short form: one key and its values; points are called seed=1, seed=2, ..., or run.seed=1 where
//                                     another axis has a key that ends alike
//     noise: {seeds: true, points: [...]}   an axis that tables take the mean over; one of run.seed is such an axis
//   runs: [{name: a, set: {...}}]     one more axis, without a name: a list instead of a grid
//   only, exclude: [{precision: sr, tp: [2, 4]}]   combinations, by points of axes
//   ranks: 2                          of every run; a point may have its own. Left out: as many as the layout needs
//   baseline: sr                      the point, or the value, that others are compared with
//   at_once: 2                        runs at one time
//   collect: [final_loss, drift]      columns of the table; left out: all that have something to tell
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/origin.h"

namespace hlat {

struct StudyPoint {
  std::string name;        // "seed=1", where it is a value of one key
  std::string value = {};  // "1" then
  std::vector<Entry> set = {};
  int64_t ranks = 0;  // 0: the study's
  Origin ranks_at = {};
  bool is_called(const std::string& word) const { return word == name || (!value.empty() && word == value); }
};

struct StudyAxis {
  std::string name;       // "run.seed" in the short form
  std::string leaf = {};  // "seed" then, or "run.seed" where another axis has a key that ends alike
  bool seeds = false;     // tables take the mean over it
  std::vector<StudyPoint> points = {};
  Origin origin = {};
  bool is_called(const std::string& word) const { return word == name || (!leaf.empty() && word == leaf); }
};

// Points by axis; those of one axis are alternatives.
using StudyMatch = std::map<std::string, std::vector<std::string>>;

struct Study {
  std::string file, name;
  std::string base;             // a config file; empty: defaults
  std::vector<Entry> set = {};  // of the base, where it is written out, then of all runs
  std::vector<StudyAxis> axes = {};
  std::vector<StudyMatch> only = {}, exclude = {};
  int64_t ranks = 0, at_once = 1;  // ranks 0: as the layout needs
  Origin ranks_at = {};
  std::string baseline = {};
  std::vector<std::string> collect = {};
};

// `columns`: what `collect` may name. UsageError with all problems, each with its line.
Study read_study(const std::string& file, const std::vector<std::string_view>& columns);

}  // namespace hlat
