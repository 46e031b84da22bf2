#include "supervise/agents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "supervise/agent_news.h"

namespace hlat {

namespace {

using AgentLine = nlohmann::ordered_json;

constexpr double kPing = 1;           // seconds between signs of life
constexpr double kAgentSilence = 10;  // after which a host is gone: its agent speaks at least once a second
constexpr double kUsualSilence = 1;   // of an agent or of this process, that is no delay
constexpr double kAgentCall = 60;     // for an agent that was started to call

}  // namespace

struct Agents::Agent {
  std::string host;
  std::string token;  // of this start: another agent, started before, does not know it
  double began = 0;
  std::unique_ptr<Child> process;
  std::shared_ptr<SharedLine> line;  // null: it has not called yet
  double heard = 0;
  AgentNews news;
  std::string errors;  // what its program said
  bool refused = false;

  bool lives() const { return line != nullptr && !line->closed() && now_s() - heard < kAgentSilence; }
};

bool is_this_host(const std::string& name) { return name == host_name() || name == "localhost" || name == "127.0.0.1"; }

std::string random_word(int letters) {
  std::random_device random;
  std::string word;
  while (static_cast<int>(word.size()) < letters) word += fmt::format("{:08x}", random());
  return word.substr(0, static_cast<size_t>(letters));
}

Agents::Agents(Reach reach, std::string version)
    : reach_(std::move(reach)), version_(std::move(version)), pings_(json_text(AgentLine{{"ping", 1}}), kPing), polled_(now_s()) {}

Agents::~Agents() {
  send_all(json_text(AgentLine{{"quit", 1}}));
  for (const auto& [host, agent] : agents_)  // a moment to end by themselves
    for (int i = 0; i < 50 && agent->line != nullptr && agent->process->running(); ++i) wait_readable({}, 0.02);
}

bool Agents::lives(const std::string& host) const {
  const auto found = agents_.find(host);
  return found != agents_.end() && found->second->lives();
}

// It was started and may still call.
bool Agents::starts(const std::string& host) const {
  const auto found = agents_.find(host);
  if (found == agents_.end()) return false;
  const Agent& agent = *found->second;
  return agent.line == nullptr && !agent.refused && agent.process->running() && now_s() - agent.began < kAgentCall;
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
       {own_program(), std::string("agent"), std::string("--connect"), fmt::format("{}:{}", fmt::join(addresses, ","), calls_.port())})
    words.push_back(word);
  auto agent = std::make_unique<Agent>();
  agent->host = host;
  agent->token = random_word(32);
  agent->began = now_s();
  agent->process = std::make_unique<Child>(words, ChildOptions{.input = agent->token + " " + host + "\n", .take_errors = true});
  agents_[host] = std::move(agent);
}

std::map<std::string, std::string> Agents::ensure(const std::vector<std::string>& hosts, double limit_s) {
  poll(0);  // what has come while this process did something else tells who lives
  for (const std::string& host : hosts)
    if (!lives(host) && !starts(host)) start(host);
  std::map<std::string, std::string> missing;
  for (const double limit = now_s() + limit_s;;) {
    poll(0.05);
    missing.clear();
    bool waits = false;
    for (const std::string& host : hosts) {
      Agent& agent = *agents_.at(host);
      if (agent.lives()) continue;
      if (!agent.refused) agent.errors += agent.process->read_errors();
      const bool may_come = starts(host);
      waits = waits || may_come;
      std::string words = agent.errors.substr(0, agent.errors.find('\n'));
      if (words.empty())
        words = may_come ? "it does not answer" : fmt::format("its agent ended with code {}", agent.process->status().value_or(-1));
      missing[host] = words;
    }
    if (!waits || now_s() > limit) break;
  }
  for (const auto& [host, why] : missing)
    if (!starts(host)) agents_.erase(host);
  return missing;
}

std::vector<std::string> Agents::watch(const std::vector<std::string>& hosts, const std::string& job, double grace_s, double limit_s) {
  job_ = job;
  watched_ = {hosts.begin(), hosts.end()};
  for (auto& [host, agent] : agents_) {
    agent->news.watch(watched_.contains(host) ? job : "");
    if (agent->lives() && watched_.contains(host)) {
      agent->heard = now_s();
      agent->line->send(json_text(AgentLine{{"watch", job}, {"grace_s", grace_s}}));
    }
  }
  std::vector<std::string> missing;
  for (const double limit = now_s() + limit_s;;) {
    poll(0.02);
    missing.clear();
    for (const std::string& host : hosts)
      if (const auto found = agents_.find(host); found == agents_.end() || !found->second->news.reported()) missing.push_back(host);
    const bool waits = std::any_of(missing.begin(), missing.end(), [&](const std::string& host) { return lives(host); });
    if (!waits || now_s() > limit) break;
  }
  take_late_s();  // what was before the ranks is none of theirs
  return missing;
}

void Agents::send_all(const std::string& line) {
  for (const auto& [host, agent] : agents_)
    if (agent->line != nullptr) agent->line->send(line);
}

// An agent that this start of it was waited for; all others are strangers, or late ones of a start that was given up.
void Agents::meet(AgentCall call) {
  const auto found = agents_.find(call.name);
  if (found == agents_.end() || found->second->line != nullptr || found->second->token != call.token) return;
  Agent& agent = *found->second;
  if (call.version != version_) {
    agent.errors = fmt::format("hlat {} is there, {} here: they must be the same", call.version, version_);
    agent.refused = true;
    call.line.send(json_text(AgentLine{{"quit", 1}}));
    return;
  }
  agent.line = std::make_shared<SharedLine>(std::move(call.line));
  agent.heard = now_s();
  pings_.add(agent.line);
}

void Agents::take(Agent& agent) try {
  for (const std::string& text : agent.line->receive()) {
    agent.heard = now_s();
    agent.news.take(text, agent.heard);
  }
  agent.line->flush();
} catch (const Error& e) {
  agent.errors = e.what();
  agent.line->close();
}

void Agents::poll(double wait_s) {
  std::vector<int> fds = calls_.fds();
  for (const auto& [host, agent] : agents_)
    if (agent->line != nullptr && !agent->line->closed()) fds.push_back(agent->line->fd());
  late_.add(now_s() - polled_ - kUsualSilence);
  wait_readable(fds, wait_s);
  for (AgentCall& call : calls_.take(now_s())) meet(std::move(call));
  for (auto& [host, agent] : agents_)
    if (agent->line != nullptr) take(*agent);
  polled_ = now_s();
}

std::vector<RankView> Agents::views() const {
  std::map<int, RankView> all;
  for (const auto& [host, agent] : agents_)
    for (const auto& [rank, view] : agent->news.views()) all[rank] = agent->news.view(rank, now_s());
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

double Agents::take_late_s() {
  double most = late_.take();
  for (auto& [host, agent] : agents_) {
    if (!watched_.contains(host)) continue;
    agent->news.late.silent(now_s() - agent->heard, kUsualSilence);
    most = std::max(most, agent->news.late.take());
  }
  return most;
}

int64_t Agents::oom_kills(const std::string& host) const {
  const auto found = agents_.find(host);
  return found == agents_.end() ? 0 : found->second->news.oom_kills();
}

std::string Agents::host_of(int rank) const {
  for (const auto& [host, agent] : agents_)
    if (agent->news.views().contains(rank)) return host;
  return {};
}

void Agents::signal_ranks(int number) { send_all(json_text(AgentLine{{"signal", number}, {"job", job_}})); }

std::string Agents::evidence(double limit_s) {
  for (auto& [host, agent] : agents_) agent->news.ask();
  send_all(json_text(AgentLine{{"evidence", job_}}));
  const auto waits = [&] {
    return std::any_of(agents_.begin(), agents_.end(),
                       [&](const auto& a) { return watched_.contains(a.first) && a.second->lives() && !a.second->news.evidence_told(); });
  };
  for (const double limit = now_s() + limit_s; waits() && now_s() < limit;) poll(0.05);
  std::string text;
  for (const auto& [host, agent] : agents_) text += agent->news.evidence();
  return text;
}

JobEnd Agents::end(const std::string& name, const EndOrder& order) {
  poll(0);
  std::set<std::string> asked;
  for (auto& [host, agent] : agents_) {
    agent->news.ask();
    if (agent->lives()) asked.insert(host);
  }
  const double begin = now_s();
  for (const std::string& host : asked)
    agents_.at(host)->line->send(json_text(AgentLine{{"end", name}, {"wait_s", order.wait_s}, {"limit_s", order.limit_s}}));
  const auto waits = [&] {
    return std::any_of(asked.begin(), asked.end(),
                       [&](const std::string& host) { return lives(host) && !agents_.at(host)->news.end_told(); });
  };
  while (waits() && !(order.hurry && now_s() - begin >= order.at_least_s && order.hurry())) poll(0.02);
  JobEnd all;
  all.seconds = now_s() - begin;
  for (const auto& [host, agent] : agents_) {
    for (const std::string& words : agent->news.left()) all.left.push_back(fmt::format("{} on {}", words, host));
    if (!agent->news.left().empty()) all.stuck.push_back(host);
    if (agent->line != nullptr && !agent->news.end_told()) all.silent.push_back(host);
  }
  for (const std::string& host : watched_)
    if (!agents_.contains(host)) all.silent.push_back(host);
  for (const std::string& host : all.silent) agents_.erase(host);
  watched_.clear();
  job_.clear();
  return all;
}

}  // namespace hlat
