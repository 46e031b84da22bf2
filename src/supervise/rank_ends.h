// Why an attempt ended, from how its ranks did: of all ranks that failed, the one that is the cause.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flight/rank_view.h"
#include "supervise/restart_policy.h"

namespace hlat {

class RankEnds {
 public:
  explicit RankEnds(int ranks) : ranks_(ranks) {}

  void look(const std::vector<RankView>& views, double now);  // takes note of ranks that have ended since
  bool any_failed() const { return first_failure_ > 0; }
  double first_failure() const { return first_failure_; }  // when it was seen
  bool all_ended() const { return static_cast<int>(ends_.size()) == ranks_; }
  bool all_finished() const;  // with exit code 0
  // The cause: a rank that says what went wrong with its own work comes before one that is gone without a word, that before one which says
  // that a peer failed, and that before those who were asked to end. Of equals the earliest, then the lowest.
  Failure cause() const;

 private:
  struct End {
    RankView view;
    double seen = 0;
  };
  int ranks_;
  double first_failure_ = 0;
  std::map<int, End> ends_;
};

}  // namespace hlat
