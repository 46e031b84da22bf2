#include "supervise/agents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/json_text.h"
#include "base/machine.h"

namespace hlat {

namespace {

using AgentLine = nlohmann::ordered_json;

constexpr double kPing = 1;           // seconds between signs of life
constexpr double kAgentSilence = 10;  // after which a host is gone: its agent speaks five times a second
constexpr double kEndReply = 45;      // for the end of a job: SIGKILL, and the kernel's own time
constexpr size_t kStepsKept = 64;

std::string random_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

struct Agents::Agent {
  std::string host;
  std::unique_ptr<Child> process;
  std::unique_ptr<LineSocket> line;  // null: it has not called yet
  double heard = 0;
  double late_s = 0;
  int64_t oom_now = 0, oom_before = -1;
  std::map<int, RankView> views;
  double viewed = 0;  // when they came
  std::map<int, std::deque<StepTime>> steps;
  bool end_told = false, evidence_told = false;
  JobEnd end;
  std::string evidence;
  std::string errors;  // what its program said

  bool lives() const { return line != nullptr && !line->closed() && now_s() - heard < kAgentSilence; }
};

bool is_this_host(const std::string& name) { return name == host_name() || name == "localhost" || name == "127.0.0.1"; }

Agents::Agents(Reach reach, std::string version)
    : reach_(std::move(reach)), version_(std::move(version)), token_(random_token()), polled_(now_s()) {}

Agents::~Agents() {
  send_all(json_text(AgentLine{{"quit", 1}}));
  for (const auto& [host, agent] : agents_)  // a moment to end by themselves
    for (int i = 0; i < 50 && agent->process->running(); ++i) wait_readable({}, 0.02);
}

bool Agents::lives(const std::string& host) const {
  const auto found = agents_.find(host);
  return found != agents_.end() && found->second->lives();
}

void Agents::start(const std::string& host) {
  const bool here = is_this_host(host);
  std::vector<std::string> words;
  if (reach_.by_srun)
    words = {"srun", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist=" + host, "--quiet"};
  else if (!here)
    words = reach_.remote, words.push_back(host);
  const std::vector<std::string> addresses = here && !reach_.by_srun ? std::vector<std::string>{"127.0.0.1"} : own_addresses();
  for (const std::string& word :
       {own_program(), std::string("agent"), std::string("--connect"), fmt::format("{}:{}", fmt::join(addresses, ","), listener_.port())})
    words.push_back(word);
  auto agent = std::make_unique<Agent>();
  agent->host = host;
  agent->process = std::make_unique<Child>(words, ChildOptions{.input = token_ + " " + host + "\n", .take_errors = true});
  agents_[host] = std::move(agent);
}

std::map<std::string, std::string> Agents::ensure(const std::vector<std::string>& hosts, double limit_s) {
  for (const std::string& host : hosts)
    if (!lives(host)) start(host);
  std::map<std::string, std::string> missing;
  for (const double limit = now_s() + limit_s;;) {
    poll(0.05);
    missing.clear();
    bool waits = false;
    for (const std::string& host : hosts) {
      Agent& agent = *agents_.at(host);
      if (agent.lives()) continue;
      agent.errors += agent.process->read_errors();
      const bool runs = agent.process->running();
      waits = waits || runs;
      std::string words = agent.errors.substr(0, agent.errors.find('\n'));
      if (words.empty())
        words = runs ? "it does not answer" : fmt::format("its agent ended with code {}", agent.process->status().value_or(-1));
      missing[host] = words;
    }
    if (missing.empty() || !waits || now_s() > limit) break;
  }
  for (const auto& [host, why] : missing) agents_.erase(host);
  return missing;
}

void Agents::watch(const std::vector<std::string>& hosts, const std::string& job, double grace_s) {
  job_ = job;
  watched_ = {hosts.begin(), hosts.end()};
  for (auto& [host, agent] : agents_) {
    agent->views.clear();
    agent->steps.clear();
    agent->oom_before = -1;
    if (watched_.contains(host)) agent->line->send(json_text(AgentLine{{"watch", job}, {"grace_s", grace_s}}));
  }
}

void Agents::send_all(const std::string& line) {
  for (const auto& [host, agent] : agents_)
    if (agent->line != nullptr) agent->line->send(line);
}

void Agents::accept() {
  while (auto caller = listener_.accept()) callers_.push_back(std::move(*caller));
  for (size_t i = 0; i < callers_.size();) {
    bool done = callers_[i].closed();
    for (const std::string& text : callers_[i].receive()) {
      const AgentLine hello = AgentLine::parse(text, nullptr, false);
      const bool ours = hello.is_object() && hello.value("hello", "") == token_;
      const auto found = ours ? agents_.find(hello.value("name", "")) : agents_.end();
      if (found != agents_.end()) {
        found->second->line = std::make_unique<LineSocket>(std::move(callers_[i]));
        found->second->heard = now_s();
        if (const std::string other = hello.value("version", ""); other != version_)
          found->second->errors = fmt::format("hlat {} is there, {} here", other, version_);
      }
      done = true;  // an agent that is known from now on, or a stranger
      break;
    }
    if (done)
      callers_.erase(callers_.begin() + static_cast<int64_t>(i));
    else
      ++i;
  }
}

void Agents::take(Agent& agent, const std::string& text) {
  agent.heard = now_s();
  const AgentLine line = AgentLine::parse(text, nullptr, false);
  if (!line.is_object()) return;
  if (line.value("job", "") == job_ && line.contains("ranks")) {
    agent.late_s = line.value("late_s", 0.0);
    agent.oom_now = line.value("oom_kills", int64_t{0});
    if (agent.oom_before < 0) agent.oom_before = agent.oom_now;
    agent.viewed = now_s();
    for (const AgentLine& one : line["ranks"]) {
      RankView view = rank_view(one);
      std::deque<StepTime>& steps = agent.steps[view.rank];
      steps.insert(steps.end(), view.steps.begin(), view.steps.end());
      while (steps.size() > kStepsKept) steps.pop_front();
      agent.views[view.rank] = std::move(view);
    }
  }
  if (line.contains("ended")) {
    agent.end_told = true;
    agent.end.seconds = line.value("seconds", 0.0);
    for (const AgentLine& words : line.value("left", AgentLine::array()))
      agent.end.left.push_back(fmt::format("{} on {}", words.get<std::string>(), agent.host));
  }
  if (line.contains("evidence")) {
    agent.evidence_told = true;
    agent.evidence = line.value("text", "");
  }
}

void Agents::poll(double wait_s) {
  std::vector<int> fds{listener_.fd()};
  for (const auto& [host, agent] : agents_)
    if (agent->line != nullptr && !agent->line->closed()) fds.push_back(agent->line->fd());
  for (const LineSocket& caller : callers_) fds.push_back(caller.fd());
  const double begin = now_s();
  late_s_ = std::max(0.0, begin - polled_ - 1);  // this process itself was held up
  wait_readable(fds, wait_s);
  accept();
  for (auto& [host, agent] : agents_) {
    if (agent->line == nullptr) continue;
    for (const std::string& text : agent->line->receive()) take(*agent, text);
    agent->line->flush();
  }
  if (now_s() - pinged_ > kPing) {
    pinged_ = now_s();
    send_all(json_text(AgentLine{{"ping", 1}}));
  }
  polled_ = now_s();
}

std::vector<RankView> Agents::views() const {
  std::map<int, RankView> all;
  for (const auto& [host, agent] : agents_)
    for (const auto& [rank, view] : agent->views) {
      RankView v = view;
      const double since = now_s() - agent->viewed;
      v.silent_s += since;
      v.phase_s += since;
      v.age_s += since;
      for (GroupView& g : v.groups) g.since_s += since;
      const std::deque<StepTime>& steps = agent->steps.at(rank);
      v.steps.assign(steps.begin(), steps.end());
      all[rank] = std::move(v);
    }
  std::vector<RankView> out;
  for (auto& [rank, view] : all) out.push_back(std::move(view));
  return out;
}

std::vector<std::string> Agents::lost() const {
  std::vector<std::string> hosts;
  for (const std::string& host : watched_)
    if (!lives(host)) hosts.push_back(host);
  return hosts;
}

double Agents::late_s() const {
  double most = late_s_;
  for (const auto& [host, agent] : agents_)
    if (watched_.contains(host)) most = std::max({most, agent->late_s, now_s() - agent->heard - 1});
  return most;
}

int64_t Agents::oom_kills(const std::string& host) const {
  const auto found = agents_.find(host);
  return found == agents_.end() || found->second->oom_before < 0 ? 0 : found->second->oom_now - found->second->oom_before;
}

std::string Agents::host_of(int rank) const {
  for (const auto& [host, agent] : agents_)
    if (agent->views.contains(rank)) return host;
  return {};
}

void Agents::signal_ranks(int number) { send_all(json_text(AgentLine{{"signal", number}, {"job", job_}})); }

std::string Agents::evidence(double limit_s) {
  for (auto& [host, agent] : agents_) agent->evidence_told = false;
  send_all(json_text(AgentLine{{"evidence", job_}}));
  const auto waits = [&] {
    return std::any_of(agents_.begin(), agents_.end(),
                       [&](const auto& a) { return watched_.contains(a.first) && a.second->lives() && !a.second->evidence_told; });
  };
  for (const double limit = now_s() + limit_s; waits() && now_s() < limit;) poll(0.05);
  std::string text;
  for (const auto& [host, agent] : agents_)
    if (agent->evidence_told) text += agent->evidence;
  return text;
}

JobEnd Agents::end(const std::string& prefix, double wait_s) {
  for (auto& [host, agent] : agents_) {
    agent->end_told = false;
    agent->end = {};
  }
  const double begin = now_s();
  send_all(json_text(AgentLine{{"end", prefix}, {"wait_s", wait_s}}));
  // An agent that ends processes says nothing meanwhile: only its connection tells that it lives.
  const auto waits = [&] {
    return std::any_of(agents_.begin(), agents_.end(),
                       [](const auto& a) { return a.second->line != nullptr && !a.second->line->closed() && !a.second->end_told; });
  };
  for (const double limit = now_s() + wait_s + kEndReply; waits() && now_s() < limit;) poll(0.02);
  JobEnd all;
  all.seconds = now_s() - begin;
  for (const auto& [host, agent] : agents_) {
    all.left.insert(all.left.end(), agent->end.left.begin(), agent->end.left.end());
    if (!agent->end_told) all.silent.push_back(host);
    if (agent->end_told) agent->heard = now_s();
  }
  watched_.clear();
  job_.clear();
  return all;
}

}  // namespace hlat
