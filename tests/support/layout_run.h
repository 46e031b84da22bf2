// Trains a tiny model on a mesh of ranks that are threads, and gathers what it came to, for comparison with one rank.
#pragma once

#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

#include "config/config.h"
#include "parallel/mesh.h"
#include "plan/dry_run.h"
#include "train/step_runner.h"

namespace hlat {

struct LayoutResult {
  std::vector<StepResult> steps;                       // of rank 0; all ranks must agree
  std::map<std::string, std::vector<double>> weights;  // global tensors, put together from the ranks' slices
};

// A layout of ranks, and the tiny model it trains.
struct Layout {
  int tp = 1, pp = 1, dp = 1;
  bool sp = false, zero1 = false;
  int chunks = 1;
  std::vector<int64_t> cuts = {};
  const char* recompute = "none";
  int64_t kv = 2, layers = 4, micro = 1, vocab = 101;
  bool tied = false;
  PrecisionKind precision = PrecisionKind::fp32;

  Config config() const;
  std::string name() const;  // what differs from one rank, fit for a test's name
};

inline void PrintTo(const Layout& l, std::ostream* out) { *out << l.name(); }  // for GoogleTest

// Heads, ffn and vocabulary that few degrees divide.
Config layout_config();

// Deterministic tokens for lanes [first, first + micro_batch): functions of step and lane alone.
void lane_batch(const Config& config, int64_t step, int64_t first, int32_t* inputs, int32_t* targets);

// Called on every rank after each step, for tests that plant faults.
using AfterStep = std::function<void(StepRunner& runner, int64_t step)>;

// Stands between a rank of the mesh and the comm of one of its axes, for tests that plant faults.
using WrapComm = std::function<std::unique_ptr<Comm>(std::unique_ptr<Comm> comm, int rank)>;

// One rank's part of run_layout, on its mesh: trains and adds what it came to. transport: of the mesh's groups. Ranks that are threads
// share result and mutex.
struct LayoutRank {
  const Mesh& mesh;
  int rank = 0;
  Backend& backend;
  Transport transport = Transport::host;
};
void train_rank(const Config& config, int64_t steps, const LayoutRank& on, const AfterStep& after, LayoutResult& result, std::mutex& mutex);

// Makes the backend of one rank. Ranks whose device has memory of its own exchange tensors through the host's.
using MakeBackend = std::function<std::unique_ptr<Backend>()>;

// Runs the config's mesh for `steps` steps, on the CPU unless said otherwise. Fails the current test when a rank's high-water mark
// differs from its plan or when ranks disagree on a result, and holds replicas of weights against each other bit by bit.
LayoutResult run_layout(const Config& config, int64_t steps, const AfterStep& after = {}, const WrapComm& wrap = {},
                        const MakeBackend& make_backend = {});

}  // namespace hlat
