#include "train/step_monitor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/model_parts.h"
#include "train/row_statistics.h"

namespace hlat {

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr int64_t kSampledRows = 4;  // of a global batch

// Rows at even distances: the same ones in every layout.
bool is_sampled(int64_t row, int64_t rows) {
  const int64_t samples = std::min(kSampledRows, rows);
  return (row * samples + rows - 1) / rows * rows / samples == row;
}

// NaN is above all numbers.
double larger_of(double a, double b) { return std::isnan(a) || a > b ? a : b; }

std::vector<double> slice(const std::vector<double>& all, int64_t begin, int64_t count) {
  return {all.begin() + begin, all.begin() + begin + count};
}

}  // namespace

void combine_over(const Mesh& mesh, std::vector<double>& sums, std::vector<double>& largest) {
  std::vector<double> own = sums;
  own.insert(own.end(), largest.begin(), largest.end());
  const size_t count = own.size();
  for (const Axis axis : {Axis::tp, Axis::dp, Axis::pp}) {
    Comm& comm = mesh.along(axis);
    if (comm.size() == 1) continue;
    std::vector<double> all(count * static_cast<size_t>(comm.size()));
    std::copy(own.begin(), own.end(), all.begin() + static_cast<int64_t>(count) * comm.rank());
    comm.host().all_gather_bytes(all.data(), count * sizeof(double));
    for (size_t i = 0; i < count; ++i) {
      own[i] = all[i];
      for (size_t r = 1; r < static_cast<size_t>(comm.size()); ++r) {
        const double other = all[r * count + i];
        own[i] = i < sums.size() ? own[i] + other : larger_of(own[i], other);
      }
    }
  }
  std::copy_n(own.begin(), sums.size(), sums.begin());
  std::copy(own.begin() + static_cast<int64_t>(sums.size()), own.end(), largest.begin());
}

// What ranks add up. By part of the model: gradients, weights and their change as squares, elements that were left unchanged, elements.
struct StepMonitor::Numbers {
  enum ByPart : int64_t { kGrad, kWeight, kChange, kUnchanged, kElements, kByPart };
  enum Sample : int64_t { kRepetition, kCopyBaseline, kRows, kRepeated, kSample };
  static constexpr int64_t kFp8 = std::tuple_size_v<Fp8Counts>;
  enum Moments : int64_t { kM, kV, kLeastV, kUpdateError, kMoments };  // least: with its sign changed
  int64_t parts, table, sources;
  std::vector<double> sums, largest;

  Numbers(int64_t parts_, int64_t sources_, int64_t positions, int64_t maxima)
      : parts(parts_),
        table(sources_ * positions),
        sources(sources_),
        sums(static_cast<size_t>(kByPart * parts + table + sources + kSample + kFp8)),
        largest(static_cast<size_t>(kMoments + maxima), kNothing) {}
  double& by_part(ByPart what, int64_t part) { return sums[static_cast<size_t>(what * parts + part)]; }
  double by_part(ByPart what, int64_t part) const { return sums[static_cast<size_t>(what * parts + part)]; }
  int64_t losses() const { return kByPart * parts; }
  int64_t rows() const { return losses() + table; }
  int64_t sample() const { return rows() + sources; }
  int64_t fp8() const { return sample() + kSample; }
};

StepMonitor::StepMonitor(Executor& executor)
    : executor_(executor),
      config_(executor.config()),
      mesh_(executor.mesh()),
      device_(executor.device()),
      every_(config_.monitor.every),
      parts_(model_parts(config_.model.layers)),
      sources_(std::max<int64_t>(1, static_cast<int64_t>(config_.data.sources.size()))),
      positions_(std::clamp<int64_t>(config_.monitor.positions, 1, config_.train.seq_len)),
      updates_(executor.params(), device_) {
  if (every_ == 0) return;
  Region& io = executor.memory()[Purpose::io];
  const int64_t layers = config_.model.layers;
  maxima_ = io.alloc(DType::f64, {2 * layers + 1}, "largest values");
  change_ = io.alloc(DType::f64, {static_cast<int64_t>(executor.params().units().size()), kAdamwChange}, "changes of weights");
  watch_.activation = maxima_.rows(0, layers + 1);
  watch_.lse = maxima_.rows(layers + 1, 2 * layers + 1);
  fp8_.emplace(executor);
  if (!mesh_.last_stage()) return;
  losses_ = watch_.losses = io.alloc(DType::f64, {sources_, positions_}, "losses by source and position");
  groups_ = watch_.groups = io.alloc(DType::i32, {config_.train.micro_batch}, "sources of rows");
}

void StepMonitor::begin() {
  executor_.ops().fill(maxima_, kNothing);
  if (losses_.defined()) executor_.ops().fill(losses_, 0);
  if (groups_.defined()) executor_.ops().fill(groups_, 0);
  source_rows_.assign(static_cast<size_t>(sources_), 0);
  sample_.clear();
  repeated_.begin();
  updates_.take();
  executor_.watch(&watch_);
}

void StepMonitor::loaded(int64_t step, int64_t first, const Batch& batch, const BatchSource& source) {
  const int64_t rows = config_.train.global_batch, own = part_of(rows, mesh_.coord().dp, mesh_.shape().dp).begin;
  if (groups_.defined()) {
    std::vector<int32_t> groups(static_cast<size_t>(batch.rows));
    for (int64_t r = 0; r < batch.rows; ++r) {
      const int32_t group = source.source_of(step, first + r);
      HLAT_CHECK(0 <= group && group < sources_, "row {} of step {} comes from source {} of {}", first + r, step, group, sources_);
      groups[static_cast<size_t>(r)] = group;
      source_rows_[static_cast<size_t>(group)] += 1;
    }
    device_.upload(groups_, groups.data());
  }
  if (!mesh_.first_stage()) return;
  repeated_.add(batch);
  for (int64_t r = 0; r < batch.rows; ++r) {
    if (!is_sampled(own + first + r, rows)) continue;
    const auto begin = batch.inputs.begin() + r * batch.seq_len;
    std::vector<int32_t>& row = sample_.emplace_back(begin, begin + batch.seq_len);
    row.push_back(batch.targets[static_cast<size_t>((r + 1) * batch.seq_len - 1)]);
  }
}

// The host has time while a device works.
void StepMonitor::end_passes() {
  executor_.watch(nullptr);
  repetition_ = copy_baseline_ = 0;
  for (const std::vector<int32_t>& row : sample_) {
    const RowStatistics s = row_statistics(row, config_.model.vocab);
    repetition_ += s.repetition;
    copy_baseline_ += s.copy_baseline;
  }
  sampled_ = static_cast<double>(sample_.size());
}

// Units that this rank counts in global norms. Without optimizer sharding all replicas have the same ones, and the first counts them.
void StepMonitor::add_units(const OptimScalars& s, Numbers& n) const {
  const ParamStore& params = executor_.params();
  const std::vector<UpdateUnit>& units = params.units();
  std::vector<double> grad(units.size()), weight(units.size());
  std::vector<AdamwChange> change(units.size());
  device_.download(grad.data(), s.grad_sq);
  device_.download(weight.data(), s.weight_sq);
  device_.download(change.data(), change_);
  for (size_t i = 0; i < units.size(); ++i) {
    const AdamwChange& c = change[i];
    double* moments = n.largest.data();
    moments[Numbers::kM] = larger_of(moments[Numbers::kM], c.m_max);
    moments[Numbers::kV] = larger_of(moments[Numbers::kV], c.v_max);
    moments[Numbers::kLeastV] = larger_of(moments[Numbers::kLeastV], -c.v_min);
    if (!units[i].counted || !(config_.parallel.zero1 || mesh_.coord().dp == 0)) continue;
    const int64_t part = model_part(params.spec(units[i].param).name, config_.model.layers);
    n.by_part(Numbers::kGrad, part) += grad[i];
    n.by_part(Numbers::kWeight, part) += weight[i];
    n.by_part(Numbers::kChange, part) += c.change_sq;
    n.by_part(Numbers::kUnchanged, part) += c.unchanged;
    n.by_part(Numbers::kElements, part) += static_cast<double>(units[i].tensors.weight.numel());
  }
}

// Losses are equal on all tp ranks, and the first knows the sources; rows are sampled on the first stage.
void StepMonitor::add_passes(Numbers& n) {
  device_.download(n.largest.data() + Numbers::kMoments, maxima_);
  if (losses_.defined() && mesh_.coord().tp == 0) {
    device_.download(n.sums.data() + n.losses(), losses_);
    std::copy(source_rows_.begin(), source_rows_.end(), n.sums.begin() + n.rows());
  }
  if (!mesh_.first_stage() || mesh_.coord().tp != 0) return;
  const int64_t repeated = repeated_.count(mesh_.along(Axis::dp));
  double* sample = n.sums.data() + n.sample();
  sample[Numbers::kRepetition] = repetition_;
  sample[Numbers::kCopyBaseline] = copy_baseline_;
  sample[Numbers::kRows] = sampled_;
  if (mesh_.coord().dp == 0) sample[Numbers::kRepeated] = static_cast<double>(repeated);
}

Monitors StepMonitor::finish(const OptimScalars& s, double lr, int64_t step) {
  Numbers n(parts_, sources_, positions_, maxima_.dim(0));
  add_units(s, n);
  add_passes(n);
  std::ranges::copy(fp8_->take(true), n.sums.begin() + n.fp8());
  if (const auto error = updates_.error(config_.optim, lr, step)) n.largest[Numbers::kUpdateError] = *error;
  combine_over(mesh_, n.sums, n.largest);
  return monitors_of(n);
}

std::optional<Monitors> StepMonitor::finish_skipped() {
  if (!executor_.params().precision().fp8) return {};
  const Fp8Counts own = fp8_->take(false);
  // Inputs and gradients, which come first: no weight was stored.
  std::vector<double> sums(own.begin(), own.begin() + 3 * static_cast<int64_t>(Fp8Role::weight)), none;
  combine_over(mesh_, sums, none);
  Monitors m;
  add_fp8(m, sums);
  return m;
}

Monitors StepMonitor::monitors_of(const Numbers& n) const {
  Monitors m;
  for (int64_t p = 0; p < parts_; ++p) {
    const double weight = n.by_part(Numbers::kWeight, p), elements = n.by_part(Numbers::kElements, p);
    m.grad_norm.push_back(std::sqrt(n.by_part(Numbers::kGrad, p)));
    m.weight_norm.push_back(std::sqrt(weight));
    m.update_ratio.push_back(weight > 0 ? std::sqrt(n.by_part(Numbers::kChange, p) / weight) : 0);
    m.unchanged.push_back(n.by_part(Numbers::kUnchanged, p) / elements);
  }
  const int64_t layers = config_.model.layers;
  m.max_activation = slice(n.largest, Numbers::kMoments, layers + 1);
  m.max_lse = slice(n.largest, Numbers::kMoments + layers + 1, layers);
  m.moment1_max = n.largest[Numbers::kM];
  m.moment2_max = n.largest[Numbers::kV];
  if (const double error = n.largest[Numbers::kUpdateError]; error != kNothing) m.update_error = error;
  m.moment2_min = m.moment2_max > 0 ? -n.largest[Numbers::kLeastV] : 0;
  add_fp8(m, std::span(n.sums).subspan(static_cast<size_t>(n.fp8()), Numbers::kFp8));

  const int64_t seq = config_.train.seq_len;
  const auto loss = [&](int64_t source, int64_t position) {
    return n.sums[static_cast<size_t>(n.losses() + source * positions_ + position)];
  };
  const auto begin = [&](int64_t position) { return (position * seq + positions_ - 1) / positions_; };  // as Ops::add_losses cuts a row
  double rows = 0;
  for (int64_t i = 0; i < sources_; ++i) rows += n.sums[static_cast<size_t>(n.rows() + i)];
  for (int64_t p = 0; p < positions_; ++p) {
    double sum = 0;
    for (int64_t i = 0; i < sources_; ++i) sum += loss(i, p);
    m.position_loss.push_back(sum / (rows * static_cast<double>(begin(p + 1) - begin(p))));
  }
  for (int64_t i = 0; i < static_cast<int64_t>(config_.data.sources.size()); ++i) {
    const double own = n.sums[static_cast<size_t>(n.rows() + i)];
    double sum = 0;
    for (int64_t p = 0; p < positions_; ++p) sum += loss(i, p);
    if (own > 0) m.source_loss.emplace_back(config_.data.sources[static_cast<size_t>(i)].id(), sum / (own * static_cast<double>(seq)));
  }
  const double* sample = n.sums.data() + n.sample();
  m.repetition = sample[Numbers::kRepetition] / sample[Numbers::kRows];
  m.repeated_rows = sample[Numbers::kRepeated] / static_cast<double>(config_.train.global_batch);
  m.copy_baseline = sample[Numbers::kCopyBaseline] / sample[Numbers::kRows];
  return m;
}

}  // namespace hlat
