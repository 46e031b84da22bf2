// hlat check --model: whether the model, its gradients, its optimizer, its checkpoints and its data are right on this mesh, in seconds, on
// a shrunk copy (shrunk.h). Collective over the world; the report is on all ranks.
#pragma once

#include <array>
#include <functional>
#include <set>
#include <string_view>

#include "selfcheck/check_model.h"
#include "selfcheck/verdict.h"

namespace hlat {

inline constexpr std::array<std::string_view, 11> kModelChecks = {"init",     "loss",   "rope",   "leak",      "gradients", "updates",
                                                                  "replicas", "shared", "resume", "recompute", "data"};

// "leak,data", of --only, as names. UsageError for a word that is none.
std::set<std::string> parse_model_checks(const std::string& list);

struct SelfCheckPlace {
  Backend& backend;
  Comm& world;
  int local_ranks = 1, threads = 1;
  std::vector<int> on_host = {0};                    // ranks
  std::function<void(CheckModel&)> after_load = {};  // of `resume`, for tests: spoils what was loaded
  std::function<void(const char*)> begins = {};      // told the name of each check before it is made
};

// only: names; empty: all. parallel.dp of the config is known. FailedStep and all else that a run ends with is a failure of the check that
// met it where all ranks meet it, and an exception elsewhere.
SelfCheckReport run_self_checks(const Config& config, const SelfCheckPlace& place, const std::set<std::string>& only = {});

}  // namespace hlat
