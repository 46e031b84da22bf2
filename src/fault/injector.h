// Plants the faults of fault.* in one rank. The run calls it at the points below; nothing happens at any of them unless a fault is due
// there, and a run without faults has no Injector. A fault is recorded on disk (fault_file.h) and told before it comes about, and one that
// the record has as often as the config plants it does not come again.
//
//   at_phase     hang_start                              gradients, sums   nan, spike | bitflip_grad
//   at_step      kill crash stop hang slow error         loss, weights     spike | bitflip_weight
//                lost host, and all that are drawn       before_write      disk_full
//   and those of the model (model_faults.h)              saved             corrupt
//   rows, optimizer, gradients, sums                     the same
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/saver.h"
#include "config/config.h"
#include "fault/fault_file.h"
#include "fault/model_faults.h"
#include "fault/random_faults.h"
#include "fault/save_faults.h"
#include "fault/target.h"
#include "parallel/mesh.h"
#include "param/param_store.h"

namespace hlat::fault {

struct InjectorSetup {
  int rank = 0, ranks = 1;
  int attempt = 1;                                        // number of this start of the run
  bool fresh = false;                                     // the run begins anew (--fresh)
  std::function<void(const std::string&)> say = {};       // for stderr and the log
  std::function<std::vector<int>()> host_processes = {};  // ranks of this host and its agent, this process left out
  // As the system does it; others in tests.
  std::function<void(int pid, int signal)> signal = {};
  std::function<double()> clock = {};  // seconds
};

// Whether the config plants anything.
bool plants_faults(const FaultConfig& config);

class Injector {
 public:
  // UsageError, with all that is wrong, when a fault cannot happen with these ranks. A later attempt may have fewer ranks than the first:
  // faults of the others do not happen then.
  Injector(const Config& config, InjectorSetup setup);
  ~Injector();
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;

  // Before the first step; all must outlive this. UsageError when this rank has not what a fault is to be planted in.
  // last_step: of the run. Its checkpoint stays sound, since nothing would load it and go back.
  void place(const Mesh& mesh, const ParamStore& params, Device& device, int64_t last_step);

  void place_rope(Tensor table /*(T, E)*/) { in_model_.place_rope(table); }  // of this rank; after place()
  const PlantedPasses& passes() const { return in_model_; }                  // what faults of the model change there
  bool in_passes() const { return in_model_.in_passes(); }                   // any of them, in the step under way

  void at_phase(const std::string& words);  // a phase of the start-up begins
  void at_step(int64_t step);               // begins
  // A micro-batch of token ids (rows, T), before it goes to the device; `micro`: its number in the step.
  void rows(int64_t micro, int64_t seq_len, std::vector<int32_t>& inputs, std::vector<int32_t>& targets) {
    in_model_.rows(micro, seq_len, inputs, targets);
  }
  void optimizer(Tensor step) const { in_model_.optimizer(step); }  // an AdamwStep is on the device
  void gradients(size_t bucket);                                    // complete but for the sum over dp
  void sums(size_t bucket);                // about to be summed over dp, or taken as they are where there are no peers
  void loss(Tensor sum);                   // (1) f64 of this rank, before it is summed over ranks
  void weights();                          // are updated, and whole
  void before_write(uint64_t written);     // bytes of a save; from its thread
  void saved(const SaveOutcome& outcome);  // a save has ended

 private:
  struct Planned;
  void check_ranks() const;
  void draw_kinds(const Config& config);
  void fire_planned(int64_t step);
  bool is_met_by(const Planned& p) const;
  void fire_random(int64_t step);
  void strike(const FaultSpec& spec, bool random, int64_t step);
  void tell(const FaultSpec& spec, bool random, int64_t step, const std::string& more = "");
  void slow_down(const FaultSpec& spec, int64_t step);
  void idle(const FaultSpec& spec) const;
  void end_host();
  void signal(int pid, int number) const;

  const FaultConfig config_;
  InjectorSetup setup_;
  FaultFile file_;
  std::vector<Planned> planned_;
  std::optional<RandomFaults> random_;
  const Mesh* mesh_ = nullptr;
  const ParamStore* params_ = nullptr;
  Device* device_ = nullptr;
  int64_t last_step_ = 0;

  // Of the step under way.
  std::optional<Target> nan_, flipped_grad_, flipped_weight_;
  double spike_ = 0;  // factor; 0: none
  int64_t steps_begun_ = 0;
  double began_at_ = 0;               // the attempt
  double step_began_at_ = 0;          // and the latest step
  double shortest_step_s_ = 0;        // 0: not known
  double slept_s_ = 0, pause_s_ = 0;  // in the latest step; in each of those up to slow_until_
  int64_t slow_until_ = 0;

  std::atomic<int64_t> step_ = 0;  // under way
  SaveFaults in_saves_;
  ModelFaults in_model_;
};

}  // namespace hlat::fault
