// Trains a tiny model on a mesh of ranks that are threads, and gathers what it came to, for comparison with one rank.
#pragma once

#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

#include "config/config.h"
#include "parallel/mesh.h"
#include "runtime/assembly.h"
#include "train/train_step.h"

namespace hlat {

// Global tensors, put together from the ranks' slices.
using GlobalTensors = std::map<std::string, std::vector<double>>;

struct LayoutResult {
  std::vector<StepResult> steps;  // of rank 0; all ranks must agree
  GlobalTensors weights;
  GlobalTensors initial, masters;  // what the optimizer updates, before the first step and after the last: masters, or weights without
  GlobalTensors gradients;         // of the first step, from equal weights in every layout
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
  int64_t ffn = 84;
  PrecisionKind precision = PrecisionKind::fp32;
  int64_t bucket_mb = 1;
  PrecisionConfig choices = {};
  bool coalesced = true;
  int64_t heads = 8;

  Config config() const;
  std::string name() const;  // what differs from one rank, fit for a test's name
};

inline void PrintTo(const Layout& l, std::ostream* out) { *out << l.name(); }  // for GoogleTest

// Heads, ffn and vocabulary that few degrees divide. A layer has 0.1 MiB of f32 gradients, so a bucket of 1 MiB holds the model: for
// several buckets a larger ffn.
Config layout_config();

// The rows of one replica, with deterministic tokens: functions of step and global row alone.
class LayoutRows : public BatchSource {
 public:
  LayoutRows(const Config& config, const Mesh& mesh);
  void read(int64_t first, Batch& batch) override;
  int32_t source_of(int64_t, int64_t row) const override { return static_cast<int32_t>((first_ + row) % sources_); }  // in turn
  int64_t step = 1;

 private:
  int64_t vocab_, first_, sources_;
};

// Called on every rank after each step, for tests that plant faults.
using AfterStep = std::function<void(TrainStep& train, int64_t step)>;

// Stands between a rank of the mesh and the comm of one of its axes, for tests that plant faults.
using WrapComm = std::function<std::unique_ptr<Comm>(std::unique_ptr<Comm> comm, int rank)>;

// One rank's part of run_layout, on a model in its place: trains and adds what it came to. Ranks that are threads share result and mutex.
void train_rank(int64_t steps, const RankPlan& plan, PlacedModel& model, const AfterStep& after, LayoutResult& result, std::mutex& mutex);

// Makes the backend of one rank. Ranks whose device has memory of its own exchange tensors through the host's.
using MakeBackend = std::function<std::unique_ptr<Backend>()>;

// Runs the config's mesh for `steps` steps, on the CPU unless said otherwise. Fails the current test when a rank's high-water mark
// differs from its plan or when ranks disagree on a result, and holds replicas of weights against each other bit by bit; where noise is not
// keyed, replicas and their norms may differ.
LayoutResult run_layout(const Config& config, int64_t steps, const AfterStep& after = {}, const WrapComm& wrap = {},
                        const MakeBackend& make_backend = {});

// The same on the CPU with groups that sum as a library may, each in an order of its own (library_comm.h), against the plan for such
// groups.
LayoutResult run_layout_with_library_sums(const Config& config, int64_t steps, const AfterStep& after = {});

}  // namespace hlat
