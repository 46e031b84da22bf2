#include "supervise/agent_news.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace hlat {

namespace {

constexpr size_t kStepsKept = 64;

}  // namespace

void AgentNews::watch(const std::string& job) {
  job_ = job;
  viewed_ = 0;
  views_.clear();
  steps_.clear();
  oom_before_ = -1;
  late = {};
}

void AgentNews::take(const std::string& text, double now) try {
  const auto line = nlohmann::ordered_json::parse(text);
  if (!line.is_object()) fail("a line of an agent is no object");
  if (line.contains("ranks") && line.at("job").get<std::string>() == job_ && !job_.empty()) {
    late.add(line.at("late_s"));
    oom_now_ = line.at("oom_kills");
    if (oom_before_ < 0) oom_before_ = oom_now_;
    viewed_ = now;
    for (const auto& one : line.at("ranks")) {
      RankView view = rank_view(one);
      std::deque<StepTime>& steps = steps_[view.rank];
      steps.insert(steps.end(), view.steps.begin(), view.steps.end());
      while (steps.size() > kStepsKept) steps.pop_front();
      views_[view.rank] = std::move(view);
    }
  }
  if (line.contains("ended")) {
    left_ = line.at("left").get<std::vector<std::string>>();
    end_told_ = true;
  }
  if (line.contains("evidence")) {
    evidence_ = line.at("text").get<std::string>();
    evidence_told_ = true;
  }
} catch (const nlohmann::json::exception& e) {
  fail("a line of an agent: {}", e.what());
}

RankView AgentNews::view(int rank, double now) const {
  RankView v = views_.at(rank);
  const double since = now - viewed_;
  v.silent_s += since;
  v.phase_s += since;
  v.age_s += since;
  for (GroupView& g : v.groups) g.since_s += since;
  const std::deque<StepTime>& steps = steps_.at(rank);
  v.steps.assign(steps.begin(), steps.end());
  return v;
}

}  // namespace hlat
