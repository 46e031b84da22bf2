#include "checkpoint/saver.h"

#include <deque>

#include "checkpoint/rank_state.h"
#include "checkpoint/save_run.h"
#include "checkpoint/staging.h"

namespace hlat {

class Saver::Impl {
 public:
  Impl(const ParamStore& params, Device& device, int shard, int shards, std::unique_ptr<Comm> commit, const SaveOptions& options)
      : options_(options),
        commit_(std::move(commit)),
        training_(params, shard, shards, CheckpointContent::training),
        weights_(params, shard, shards, CheckpointContent::weights),
        copies_(device.make_copy_stream()),
        staging_(options.staging_bytes, copies_.get()) {
    // Its messages are never urgent, and the cores have better to do than to look for them.
    if (commit_) commit_->overlap().hurry(false);
  }

  bool busy() const { return run_ && !run_->over(); }
  uint64_t progress() const { return run_ ? run_->progress() : 0; }

  void begin(SaveRequest request) {
    HLAT_CHECK(!busy(), "a save of step {} begins while another is under way", request.index.step);
    put_away();
    if (!broken_.empty()) return refuse(request);
    const RankState& state = request.content == CheckpointContent::training ? training_ : weights_;
    uint64_t mark = 0;
    std::string problem;
    try {
      if (copies_) mark = copies_->mark();
    } catch (const std::exception& e) {
      problem = e.what();
    }
    const SaveRun::Tools tools{.state = state, .staging = staging_, .copies = copies_.get(), .commit = commit_.get(), .options = options_};
    run_ = std::make_unique<SaveRun>(tools, std::move(request), mark, problem);
  }

  void before_update(int bucket) {
    if (run_) run_->await_copy(bucket);
  }
  bool wait(double seconds) { return !run_ || run_->await_outcome(seconds); }

  std::optional<SaveOutcome> take_outcome() {
    if (outcomes_.empty()) return run_ ? run_->take_outcome() : std::nullopt;
    SaveOutcome first = std::move(outcomes_.front());
    outcomes_.pop_front();
    return first;
  }

 private:
  // The save before; its outcome may not have been asked for.
  void put_away() {
    if (!run_) return;
    if (auto outcome = run_->take_outcome()) outcomes_.push_back(std::move(*outcome));
    broken_ = run_->broken();
    run_.reset();
  }

  void refuse(const SaveRequest& request) {
    SaveOutcome outcome;
    outcome.folder = checkpoint_path(request.parent, request.index.step);
    outcome.content = request.content;
    outcome.step = request.index.step;
    outcome.problem = "the ranks cannot agree on saves any more: " + broken_;
    outcomes_.push_back(std::move(outcome));
  }

  SaveOptions options_;
  std::unique_ptr<Comm> commit_;
  RankState training_, weights_;
  std::unique_ptr<CopyStream> copies_;
  Staging staging_;
  std::deque<SaveOutcome> outcomes_;  // of earlier saves
  std::string broken_;                // why there can be no more saves; empty: there can
  std::unique_ptr<SaveRun> run_;
};

Saver::Saver(const ParamStore& params, Device& device, int shard, int shards, std::unique_ptr<Comm> commit, const SaveOptions& options)
    : impl_(std::make_unique<Impl>(params, device, shard, shards, std::move(commit), options)) {}
Saver::~Saver() = default;

size_t Saver::state_bytes(const ParamStore& params, int shard, int shards) {
  size_t bytes = 0;
  for (const StatePiece& run : state_pieces(params, shard, shards, Rows::counted)) bytes += run.tensor.bytes();
  return bytes;
}

bool Saver::busy() const { return impl_->busy(); }
uint64_t Saver::progress() const { return impl_->progress(); }
void Saver::begin(SaveRequest request) { impl_->begin(std::move(request)); }
void Saver::before_update(int bucket) { impl_->before_update(bucket); }
bool Saver::wait(double seconds) { return impl_->wait(seconds); }
std::optional<SaveOutcome> Saver::take_outcome() { return impl_->take_outcome(); }

}  // namespace hlat
