// Finds ranks that compute more slowly than their peers: those of the same pipeline stage, who do the same work, in the same steps. A rank
// is a straggler when in at least three of four steps of the window its compute time (waits for peers and data left out) is above the
// median of its peers by the factor; with one peer, above that one's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "supervise/wait_graph.h"

namespace hlat {

struct Straggler {
  int rank = 0;
  std::string host;
  double factor = 0;  // median over the window, against its peers
  int64_t first_step = 0, last_step = 0;
};

class StragglerWatch {
 public:
  StragglerWatch(const LaunchConfig& config, int ranks);

  // Takes the steps' times of the views; returns ranks that have become stragglers. Each is told once, until it has recovered.
  std::vector<Straggler> look(const RankViews& views);

 private:
  void learn(const RankView& view);
  std::vector<int64_t> common_steps(const std::vector<size_t>& ranks) const;  // the latest that all have told, at most a window
  std::vector<std::vector<double>> ratios(const std::vector<size_t>& ranks, const std::vector<int64_t>& steps) const;
  std::vector<Straggler> judge(const RankViews& views);

  const double factor_;
  const size_t window_;
  std::vector<int> stage_;                            // by rank; -1: not known yet
  std::vector<std::map<int64_t, double>> compute_s_;  // by rank and step: the latest
  std::vector<bool> told_;
};

}  // namespace hlat
