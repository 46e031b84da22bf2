// What the agent of one host has told the launcher, line by line (agent.h has the lines).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "flight/rank_view.h"
#include "supervise/late_count.h"

namespace hlat {

class AgentNews {
 public:
  void watch(const std::string& job);              // from now on only reports of this job count
  void take(const std::string& text, double now);  // Error: it is no line of an agent

  bool reported() const { return viewed_ > 0; }  // it watches the job
  const std::map<int, RankView>& views() const { return views_; }
  RankView view(int rank, double now) const;  // times count on since it came; `steps` are those of the last 64 steps
  int64_t oom_kills() const { return oom_before_ < 0 ? 0 : oom_now_ - oom_before_; }  // since the job is watched
  LateCount late;

  void ask() { end_told_ = evidence_told_ = false, left_.clear(), evidence_.clear(); }  // before an end, or evidence, is asked for
  bool end_told() const { return end_told_; }
  const std::vector<std::string>& left() const { return left_; }  // processes that do not end, in words
  bool evidence_told() const { return evidence_told_; }
  const std::string& evidence() const { return evidence_; }

 private:
  std::string job_;
  double viewed_ = 0;  // when the latest views came; 0: none have
  std::map<int, RankView> views_;
  std::map<int, std::deque<StepTime>> steps_;
  int64_t oom_now_ = 0, oom_before_ = -1;
  bool end_told_ = false, evidence_told_ = false;
  std::vector<std::string> left_;
  std::string evidence_;
};

}  // namespace hlat
