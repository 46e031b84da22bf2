// What the parts of a check share on one rank.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "burnin/finding.h"
#include "config/config.h"
#include "fault/planted.h"
#include "runtime/gather_json.h"
#include "runtime/session.h"

namespace hlat {

struct CheckOptions {
  bool short_form = false;
  double minutes = 5;          // of products and patterns, together; not of the short form
  std::set<std::string> only;  // parts; empty: all
  std::string version;         // of hlat
  bool has(const std::string& part) const { return only.empty() || only.contains(part); }
};

struct CheckRun {
  const Config& config;
  Backend& backend;
  Session& session;
  const CheckOptions& options;
  std::vector<std::string> hosts;                     // by rank
  bool competes = false;                              // some ranks have fewer cores than threads, or share a GPU: speeds are taken in turns
  int turns = 1;                                      // ranks of the fullest host
  std::function<void(const std::string&)> tell = {};  // how far it is; on rank 0

  int rank() const { return session.rank(); }
  Comm& world() const { return session.world(); }
  bool speaks_for_host() const { return session.ranks_on_host().front() == rank(); }
  bool has_gpu() const { return !backend.device_id().empty(); }
  // Whether fault.inject plants this in a rank.
  bool plants(FaultKind kind, int r) const { return fault::planted(config.fault, kind, r, world().size()).has_value(); }
  bool plants(FaultKind kind) const { return plants(kind, rank()); }
  void say(const std::string& words) const {
    if (tell && rank() == 0) tell(words);
  }
  // A finding about rank r.
  Finding finding(const std::string& part, size_t r, std::string words, Severity severity = Severity::fault) const {
    return {.part = part, .rank = static_cast<int>(r), .host = hosts[r], .words = std::move(words), .severity = severity};
  }
};

std::string figure(double value);  // three digits: "0.0143", "15.3", "1270"

}  // namespace hlat
