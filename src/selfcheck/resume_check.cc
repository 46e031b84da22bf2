#include "selfcheck/resume_check.h"

#include <limits>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/load_state.h"
#include "checkpoint/saver.h"
#include "config/print.h"
#include "runtime/gather_json.h"
#include "selfcheck/local_parts.h"
#include "train/fp8_record.h"

namespace hlat {

namespace {

constexpr double kSaveLimit = 120;  // seconds

CheckpointIndex words_of_save(const Config& config, int64_t step) {
  CheckpointIndex index;
  index.run = "check";
  index.hlat = "check";
  index.created = "1970-01-01T00:00:00Z";
  index.step = step;
  index.tokens = step * config.train.global_batch * config.train.seq_len;
  index.config = to_json(config).dump();
  return index;
}

// Overlapped with the step after it, as in a run. What is wrong with the save; empty: nothing.
std::string save_and_step(const SelfCheckRun& run, CheckModel& model, int64_t done, StepResult& next) {
  const MeshCoord& c = model.mesh().coord();
  const int dp = model.mesh().shape().dp;
  Saver saver(model.params(), model.device(), c.dp, dp, run.world.size() > 1 ? run.world.split(0, run.rank(), "save") : nullptr,
              SaveOptions{.staging_bytes = Saver::state_bytes(model.params(), c.dp, dp)});
  model.train().on_update([&](int bucket) { saver.before_update(bucket); });
  SaveRequest request;
  request.parent = run.config.run.dir;
  request.index = words_of_save(run.config, done);
  request.own_record = own_fp8(model.executor());
  request.join_records = [](CheckpointIndex& index, const std::vector<std::string>& parts) {
    if (std::string scales = join_fp8(parts); !scales.empty()) index.records.push_back({"fp8", kFp8Version, std::move(scales)});
  };
  saver.begin(std::move(request));
  next = model.step(done + 1);
  const bool ended = saver.wait(kSaveLimit);
  model.train().on_update({});
  if (!ended) return fmt::format("the save had not ended after {:.0f} s", kSaveLimit);
  const std::optional<SaveOutcome> outcome = saver.take_outcome();
  return outcome ? outcome->problem : "the save has no outcome";
}

}  // namespace

ModelVerdict check_resume(const SelfCheckRun& run, CheckModel& model, int64_t done) {
  if (run.drifts())
    return ModelVerdict::none("precision.keyed_noise = false: ranks drift apart, and a checkpoint has one copy of a weight");
  StepResult straight;
  const std::string problem = save_and_step(run, model, done, straight);
  for (const auto& of_rank : gather_json(run.world, problem))
    if (const auto words = of_rank.get<std::string>(); !words.empty())
      return ModelVerdict::failed("the checkpoint was not saved: " + words);
  const std::vector<StateHash> right = state_hashes(model.params(), model.device());
  for (const Bucket& b : model.params().buckets())
    for (const Tensor& t : {b.weight, b.transposed, b.grad, b.m, b.v, b.master})
      if (t.defined()) model.ops().fill(t, std::numeric_limits<double>::quiet_NaN());
  if (const Fp8State& fp8 = model.params().fp8_state(); fp8.scales.defined())
    for (const Tensor& t : {fp8.scales, fp8.history}) model.ops().fill(t.viewed({t.numel()}), 1);
  CheckpointReader reader(checkpoint_path(run.config.run.dir, done));
  load_state(reader, model.params(), model.mesh(), model.device(), LoadWhat::training, run.threads);
  restore_fp8(saved_fp8(reader.index(), run.config), model.executor());
  if (run.after_load) run.after_load(model);
  const StepResult resumed = model.step(done + 1);
  std::vector<std::string> own = differences(right, state_hashes(model.params(), model.device()));
  if (resumed.loss != straight.loss) own.push_back(fmt::format("the loss ({} and {})", straight.loss, resumed.loss));
  const std::vector<nlohmann::json> all = gather_json(run.world, own);
  for (int r = 0; r < static_cast<int>(all.size()); ++r)
    if (!all[static_cast<size_t>(r)].empty())
      return ModelVerdict::failed(fmt::format("step {} after a load differs on {}: {}", done + 1, run.rank_words(r),
                                              some_of(all[static_cast<size_t>(r)].get<std::vector<std::string>>())));
  return ModelVerdict::ok(fmt::format("step {} after a save and a load has the bits of a straight run", done + 1));
}

}  // namespace hlat
