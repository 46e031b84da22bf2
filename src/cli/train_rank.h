// One rank of hlat train: finds where the run starts, plans, checks that it fits, trains, and tells what came of it.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/config_args.h"
#include "cli/run_guard.h"
#include "cli/train_end.h"
#include "fault/injector.h"
#include "runtime/session.h"

namespace hlat {

struct TrainArgs {
  ConfigArgs config;
  bool json = false;
  bool fresh = false;
  std::vector<int64_t> skip;  // steps
  int64_t before = 0;         // 0: from the newest checkpoint
  bool unverified = false;    // one whose replicas were not compared will do
};

// given: the config as the user gave it; config has parallel.dp. faults: that are planted; null: none. Collective.
RunEnd train_rank(const TrainArgs& args, const Config& given, const Config& config, Session& session, RunGuard& guard,
                  fault::Injector* faults);

}  // namespace hlat
