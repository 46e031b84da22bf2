// The hosts of a run: which live, which are left out, and on which the next attempt runs. It waits for those that are missing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "supervise/agents.h"
#include "supervise/elastic.h"

namespace hlat {

class HostPool {
 public:
  using Say = std::function<void(const std::string&)>;
  // run: what the names of all jobs of this run begin with. hosts: all, spares last.
  HostPool(const Config& config, const std::vector<Host>& hosts, std::string run, Agents& agents, Say say);

  void meet();  // starts the agents of all. FaultError when none answers
  // Tries the hosts that are missing, at least once, and until launch.patience_s have passed since they went; fewer ranks only after that.
  // Nothing: `stop` said so.
  struct Found {
    MeshChoice mesh;
    double waited_s = 0;
  };
  std::optional<Found> await_mesh(const std::function<bool()>& stop);

  std::vector<Host> living() const;
  bool can_spare(const std::string& host) const;  // whether a mesh is possible without it
  void leave_out(const std::string& host) { left_out_.insert(host); }
  bool is_left_out(const std::string& host) const { return left_out_.contains(host); }
  void take_stuck(const JobEnd& end);  // hosts whose processes do not end are not used until an end finds none
  void raise_least(int dp);            // meshes of fewer replicas are not possible: they do not fit memory
  bool is_complete(const MeshChoice& mesh) const;

 private:
  std::vector<std::string> wanted() const;  // all that are not left out
  MeshChoice choose() const;
  bool newly_gone();
  void try_stuck(const std::function<bool()>& stop);

  const Config& config_;
  const std::vector<Host>& hosts_;
  std::string run_;
  Agents& agents_;
  Say say_;
  std::set<std::string> left_out_, stuck_;
  std::map<std::string, double> gone_since_;  // hosts that do not answer
  int least_dp_ = 1;
};

}  // namespace hlat
