#include "study/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "config/load.h"
#include "config/nearest.h"
#include "config/print.h"
#include "config/read.h"
#include "config/resolve.h"
#include "config/run_length.h"

namespace hlat {
namespace {

bool matches(const Study& study, const StudyRun& run, const StudyMatch& match) {
  return std::all_of(match.begin(), match.end(), [&](const auto& wanted) {
    for (size_t a = 0; a < study.axes.size(); ++a)
      if (study.axes[a].name == wanted.first) {
        const std::string& name = study.axes[a].points[run.points[a]].name;
        return std::find(wanted.second.begin(), wanted.second.end(), name) != wanted.second.end();
      }
    return false;
  });
}

bool is_wanted(const Study& study, const StudyRun& run) {
  const auto in = [&](const StudyMatch& m) { return matches(study, run, m); };
  if (!study.only.empty() && std::none_of(study.only.begin(), study.only.end(), in)) return false;
  return std::none_of(study.exclude.begin(), study.exclude.end(), in);
}

// Names of points, of all axes or of those that are no seeds.
std::string joined_names(const Study& study, const std::vector<size_t>& points, bool with_seeds) {
  std::vector<std::string> names;
  for (size_t a = 0; a < points.size(); ++a)
    if (with_seeds || !study.axes[a].seeds) names.push_back(study.axes[a].points[points[a]].name);
  return names.empty() ? "base" : fmt::format("{}", fmt::join(names, "+"));
}

StudyRun make_run(const Study& study, const std::vector<size_t>& points) {
  StudyRun run{.name = joined_names(study, points, true), .row = joined_names(study, points, false), .points = points};
  run.ranks = study.ranks, run.ranks_at = study.ranks_at;
  for (size_t a = 0; a < points.size(); ++a) {
    const StudyPoint& point = study.axes[a].points[points[a]];
    run.set.insert(run.set.end(), point.set.begin(), point.set.end());
    if (point.ranks > 0) run.ranks = point.ranks, run.ranks_at = point.ranks_at;
  }
  return run;
}

bool is_length(const Entry& e) { return std::find(kLengthKeys.begin(), kLengthKeys.end(), e.key()) != kLengthKeys.end(); }

// 0 says nothing of the length: another key gives it.
bool gives_length(const Entry& e) { return is_length(e) && e.text != "0"; }

// A key's later entry takes the place of an earlier one; of the keys that give the run's length there is one.
void put_entry(std::vector<Entry>& entries, const Entry& entry) {
  std::erase_if(entries, [&](const Entry& e) { return e.key() == entry.key() || (is_length(e) && gives_length(entry)); });
  entries.push_back(entry);
}

class ProblemLines {
 public:
  // place: begins each line of the text.
  void add(const std::string& text, const std::string& place = "") {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (seen_.insert(place + line).second) all_.push_back(place + line);
  }
  bool none() const { return all_.empty(); }
  void refuse() const {
    if (!all_.empty()) throw UsageError(fmt::format("{}", fmt::join(all_, "\n")));
  }

 private:
  std::set<std::string> seen_;
  std::vector<std::string> all_;
};

// One point, or the command line, that gives the length of the run twice: which of them counts would be a matter of order.
void check_lengths(const std::vector<Entry>& set, ProblemLines& problems) {
  const Entry* first = nullptr;
  for (const Entry& e : set) {
    if (!gives_length(e)) continue;
    if (first != nullptr && first->key() != e.key())
      problems.add(fmt::format("{}: {} = {}: the length of the run is also given as {} = {} ({}); give one of {}", e.origin.str(), e.key(),
                               e.text, first->key(), first->text, first->origin.str(), fmt::join(kLengthKeys, ", ")));
    first = &e;
  }
}

// Two axes that set one key, or the command line one of an axis, would make points that are not what their names say.
void check_axes(const Study& study, const std::vector<Entry>& words, ProblemLines& problems) {
  struct Setter {
    const StudyAxis* axis;
    const Entry* entry;
  };
  std::map<std::string, Setter> set_by;  // by what is decided: keys that take each other's place decide one thing
  const auto decided_by = [](const Entry& e) { return is_length(e) ? "the length of the run" : e.key(); };
  // "train.steps", or where the other sets another key "the length of the run (train.steps, there train.tokens)"
  const auto words_of = [](const Entry& e, const Entry& other) {
    return e.key() == other.key() ? e.key() : fmt::format("the length of the run ({}, there {})", e.key(), other.key());
  };
  for (const StudyAxis& axis : study.axes)
    for (const StudyPoint& point : axis.points) {
      check_lengths(point.set, problems);
      for (const Entry& e : point.set) {
        const auto [place, fresh] = set_by.emplace(decided_by(e), Setter{&axis, &e});
        const Setter& other = place->second;
        if (!fresh && other.axis != &axis)
          problems.add(fmt::format("{}: {} is set by the axis {} and by the axis {}", e.origin.str(), words_of(e, *other.entry),
                                   other.axis->name, axis.name));
      }
    }
  check_lengths(words, problems);
  for (const Entry& word : words)
    if (const auto place = set_by.find(decided_by(word)); place != set_by.end()) {
      const auto& [axis, entry] = place->second;
      problems.add(fmt::format("command line: {} is set by the axis {} ({}); --only chooses among its points", words_of(word, *entry),
                               axis->name, axis->origin.str()));
    }
}

// Values that are written in two ways (1e-3, 0.001) would be two rows, or two seeds, of one run. Points with names may be alike.
void check_values(const Study& study, const std::vector<PlannedRun>& planned, ProblemLines& problems) {
  std::map<std::string, const StudyRun*> by_config;
  for (const PlannedRun& p : planned) {
    Config config = p.config;
    config.run.dir.clear(), config.checkpoint.dir.clear();
    const auto [place, fresh] = by_config.emplace(to_yaml(config), &p.run);
    for (size_t a = 0; a < study.axes.size() && !fresh; ++a) {
      const StudyPoint &first = study.axes[a].points[place->second->points[a]], &second = study.axes[a].points[p.run.points[a]];
      if (&first != &second && !first.value.empty() && !second.value.empty())
        problems.add(fmt::format("{}: {} and {} are numerically equal values", study.axes[a].origin.str(), first.name, second.name));
    }
  }
}

// The layout of a run against its ranks: where they are given, and of which run. With the study's file where they follow from the layout.
void check_run_ranks(const Study& study, const PlannedRun& plan, ProblemLines& problems) try {
  with_ranks(plan.config, plan.ranks, RanksAre::planned);
} catch (const UsageError& e) {
  const StudyRun& run = plan.run;
  const std::string place = run.ranks > 0 ? fmt::format("{}: ranks = {}", run.ranks_at.str(), run.ranks) : study.file;
  problems.add(e.what(), fmt::format("{}: run {}: ", place, run.name));
}

std::string first_names(std::vector<std::string_view> names) {
  constexpr size_t kShown = 20;
  const size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

int64_t layout_ranks(const ParallelConfig& p) { return p.tp * p.pp * std::max<int64_t>(1, p.dp); }

}  // namespace

std::vector<StudyRun> expand(const Study& study) {
  std::vector<size_t> order;  // axes, the slowest first
  for (const bool seeds : {true, false})
    for (size_t a = 0; a < study.axes.size(); ++a)
      if (study.axes[a].seeds == seeds) order.push_back(a);
  size_t count = 1;
  for (const StudyAxis& axis : study.axes) count *= axis.points.size();
  constexpr size_t kMost = 10'000;
  if (count > kMost) fail<UsageError>("{}: the axes make {} runs, and a study has {} at most", study.file, count, kMost);
  std::vector<StudyRun> runs;
  for (size_t i = 0; i < count; ++i) {
    std::vector<size_t> points(study.axes.size());
    size_t rest = i;
    for (auto a = order.rbegin(); a != order.rend(); ++a) {
      points[*a] = rest % study.axes[*a].points.size();
      rest /= study.axes[*a].points.size();
    }
    StudyRun run = make_run(study, points);
    if (is_wanted(study, run)) runs.push_back(std::move(run));
  }
  if (runs.empty()) fail<UsageError>("{}: `only` and `exclude` leave no run", study.file);
  return runs;
}

std::string baseline_row(const Study& study, const StudyRun& run) {
  std::vector<size_t> points = run.points;
  bool found = false;
  for (size_t a = 0; a < study.axes.size() && !found; ++a)
    for (size_t p = 0; p < study.axes[a].points.size() && !study.axes[a].seeds && !study.baseline.empty(); ++p)
      if (study.axes[a].points[p].is_called(study.baseline)) points[a] = p, found = true;
  return found ? joined_names(study, points, false) : "";
}

std::vector<PlannedRun> plan_runs(const Study& study, const std::vector<std::string>& words, const std::filesystem::path& out) {
  ProblemLines problems;
  Reading given;
  for (const std::string& word : words) read_override(word, given);
  for (const Problem& p : given.problems) problems.add(fmt::format("{}: {}", p.origin.str(), p.text));
  for (const Entry& e : given.entries)
    if (e.key() == "run.dir") problems.add("command line: run.dir: each run of a study has a folder of its own; --out says where they are");
  check_axes(study, given.entries, problems);
  std::vector<PlannedRun> planned;
  std::set<std::string> names;
  for (StudyRun& run : expand(study)) {
    if (!names.insert(run.name).second) problems.add(fmt::format("{}: two runs would be called {}", study.file, run.name));
    std::vector<Entry> entries;
    for (const std::vector<Entry>& list : {std::cref(study.set), std::cref(run.set), std::cref(given.entries)})
      for (const Entry& e : list) put_entry(entries, e);
    try {
      PlannedRun plan{.run = std::move(run), .config = load_config_with(study.base, std::move(entries)).config};
      plan.ranks = plan.run.ranks > 0 ? plan.run.ranks : layout_ranks(plan.config.parallel);
      plan.config.run.dir = (out / plan.run.name).string();
      // In one folder a run would go on from the checkpoints of another.
      std::string& saves = plan.config.checkpoint.dir;
      if (!saves.empty()) saves = (std::filesystem::path(saves) / plan.run.name).string();
      check_run_ranks(study, plan, problems);
      planned.push_back(std::move(plan));
    } catch (const UsageError& e) {
      problems.add(e.what());
    }
  }
  if (problems.none()) check_values(study, planned, problems);
  problems.refuse();
  return planned;
}

std::vector<PlannedRun> chosen_runs(const Study& study, std::vector<PlannedRun> runs, const std::vector<std::string>& names) {
  if (names.empty()) return runs;
  const auto is_called = [&](const StudyRun& run, const std::string& name) {
    if (run.name == name || run.row == name) return true;
    for (size_t a = 0; a < run.points.size(); ++a)
      if (study.axes[a].points[run.points[a]].is_called(name)) return true;
    return false;
  };
  for (const std::string& name : names) {
    if (std::any_of(runs.begin(), runs.end(), [&](const PlannedRun& p) { return is_called(p.run, name); })) continue;
    std::vector<std::string_view> points, all;
    for (const StudyAxis& axis : study.axes)
      for (const StudyPoint& point : axis.points) points.push_back(point.name);
    all = points;
    for (const PlannedRun& p : runs) all.insert(all.end(), {p.run.name, p.run.row});
    const std::string_view near = nearest(name, all);
    fail<UsageError>("--only {}: no run, row or point of {} has this name; {}; --list shows the runs", name, study.file,
                     near.empty() ? "the points are " + first_names(points) : fmt::format("did you mean {}?", near));
  }
  std::erase_if(runs, [&](const PlannedRun& p) {
    return std::none_of(names.begin(), names.end(), [&](const std::string& name) { return is_called(p.run, name); });
  });
  return runs;
}

}  // namespace hlat
