#include "supervise/host_pool.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/machine.h"

namespace hlat {

namespace {

constexpr double kAgentStart = 30;    // seconds for the agents of all hosts to answer
constexpr double kAgentAgain = 5;     // for one that was lost; it goes on starting meanwhile
constexpr double kStillWaiting = 60;  // between lines about hosts that are waited for
constexpr double kEndAgain = 2;       // for processes that did not end before

}  // namespace

HostPool::HostPool(const Config& config, const std::vector<Host>& hosts, std::string run, Agents& agents, Say say)
    : config_(config), hosts_(hosts), run_(std::move(run)), agents_(agents), say_(std::move(say)) {}

std::vector<std::string> HostPool::wanted() const {
  std::vector<std::string> names;
  for (const Host& h : hosts_)
    if (!left_out_.contains(h.name)) names.push_back(h.name);
  return names;
}

void HostPool::meet() {
  const std::vector<std::string> names = wanted();
  const auto absent = agents_.ensure(names, kAgentStart);
  for (const auto& [host, why] : absent) say_(fmt::format("host {}: {}", host, why));
  if (absent.size() == names.size()) fail<FaultError>("no host of {} answers", names.size());
}

std::vector<Host> HostPool::living() const {
  std::vector<Host> out;
  for (const Host& h : hosts_)
    if (agents_.lives(h.name) && !left_out_.contains(h.name) && !stuck_.contains(h.name)) out.push_back(h);
  return out;
}

MeshChoice HostPool::choose() const { return choose_mesh(config_, hosts_, living(), least_dp_); }

bool HostPool::can_spare(const std::string& host) const {
  std::vector<Host> rest = living();
  std::erase_if(rest, [&](const Host& h) { return h.name == host; });
  return choose_mesh(config_, hosts_, rest, least_dp_).possible();
}

bool HostPool::is_complete(const MeshChoice& mesh) const {
  return mesh.possible() && mesh.ranks() >= choose_mesh(config_, hosts_, hosts_).ranks();
}

void HostPool::take_stuck(const JobEnd& end) {
  stuck_ = {end.stuck.begin(), end.stuck.end()};
  for (const std::string& words : end.left) say_("cannot be ended: " + words);
}

void HostPool::raise_least(int dp) { least_dp_ = std::max(least_dp_, dp); }

void HostPool::try_stuck(const std::function<bool()>& stop) {
  if (stuck_.empty()) return;
  const JobEnd end = agents_.end(run_, {.limit_s = kEndAgain, .hurry = stop});
  stuck_ = {end.stuck.begin(), end.stuck.end()};
}

std::optional<HostPool::Found> HostPool::await_mesh(const std::function<bool()>& stop) {
  const double begin = now_s();
  agents_.poll(0);
  try_stuck(stop);
  if (!is_complete(choose())) agents_.ensure(wanted(), kAgentAgain);
  double told = begin;
  for (bool waited = false;;) {
    const MeshChoice mesh = choose();
    const bool patient = newly_gone();
    if (stop()) return std::nullopt;
    if (mesh.possible() && (is_complete(mesh) || !patient)) return Found{.mesh = mesh, .waited_s = waited ? now_s() - begin : 0};
    if (!waited || now_s() - told > kStillWaiting) {
      say_(fmt::format("waiting for hosts: {}", mesh.words));
      told = now_s();
    }
    waited = true;
    agents_.ensure(wanted(), kAgentAgain);
    agents_.poll(0.5);
    try_stuck(stop);
  }
}

// Whether a host is missing that was there, or asked for, less than launch.patience_s ago.
bool HostPool::newly_gone() {
  bool newly = false;
  for (const Host& h : hosts_) {
    if (left_out_.contains(h.name) || (agents_.lives(h.name) && !stuck_.contains(h.name))) {
      gone_since_.erase(h.name);
      continue;
    }
    const double since = gone_since_.try_emplace(h.name, now_s()).first->second;
    newly = newly || now_s() - since < static_cast<double>(config_.launch.patience_s);
  }
  return newly;
}

}  // namespace hlat
