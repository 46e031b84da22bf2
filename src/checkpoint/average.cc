#include "checkpoint/average.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/file.h"
#include "base/format.h"
#include "base/json_text.h"
#include "base/part.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/checksum.h"
#include "checkpoint/config_difference.h"
#include "checkpoint/element_values.h"
#include "checkpoint/scan_cache.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMaxFile = uint64_t{4} << 30;

// Rounded to odd: the nearest bf16 of it is the nearest bf16 of x, as if rounded once.
float to_odd_float(double x) {
  const auto near = static_cast<float>(x);
  if (to_f64(near) == x || std::isnan(x)) return near;
  const auto bits = std::bit_cast<uint32_t>(near);
  return std::bit_cast<float>((std::abs(to_f64(near)) > std::abs(x) ? bits - 1 : bits) | 1u);
}

void store(double x, float& to) { to = static_cast<float>(x); }
void store(double x, bf16& to) { to = to_bf16(to_odd_float(x)); }

std::vector<double> checked_shares(const std::vector<double>& shares, size_t count) {
  if (shares.empty()) return std::vector<double>(count, 1.0);
  if (shares.size() != count) fail<UsageError>("there are {} weights for {} checkpoints", shares.size(), count);
  for (const double s : shares)
    if (!(s > 0) || !std::isfinite(s)) fail<UsageError>("the weight {} of a checkpoint is not above 0", s);
  return shares;
}

// Of each weight its master, or the weight itself where that is one, in f32.
bool has_all_masters(const CheckpointIndex& index) {
  const auto has_master = [&](const SavedTensor& t) { return index.find(StateKind::master, t.name).has_value(); };
  return std::ranges::any_of(index.tensors, has_master) && std::ranges::all_of(index.tensors, [&](const SavedTensor& t) {
           return t.kind != StateKind::weight || t.dtype == DType::f32 || has_master(t);
         });
}

int32_t finest(const CheckpointIndex& index, StateKind kind, const std::string& name) {
  const auto found = index.find(kind, name);
  return found ? *found : *index.find(StateKind::weight, name);
}

// Keys of the model that leave its tensors as they are, but not what it computes.
bool is_of_the_function(const std::string& key) { return key.starts_with("model.") && key != "model.preset" && key != "model.init_std"; }

}  // namespace

CheckpointAverage::CheckpointAverage(const std::vector<fs::path>& checkpoints, const AverageOptions& options)
    : shares_(checked_shares(options.shares, checkpoints.size())), buffers_(checkpoints.size()) {
  if (checkpoints.size() < 2) throw UsageError("an average needs two checkpoints or more");
  for (const fs::path& path : checkpoints) readers_.push_back(open_for_scan(path));
  check_alike();
  if (std::all_of(readers_.begin(), readers_.end(), [](const auto& r) { return has_all_masters(r->index()); })) kind_ = StateKind::master;
  make_index(options);
}

void CheckpointAverage::check_alike() const {
  const CheckpointReader& first = *readers_.front();
  const auto weights = [](const CheckpointIndex& index) {
    return std::count_if(index.tensors.begin(), index.tensors.end(), [](const SavedTensor& t) { return t.kind == StateKind::weight; });
  };
  for (const auto& other : readers_) {
    const auto not_in = [](const std::string& name, const CheckpointReader& has, const CheckpointReader& lacks) {
      fail<UsageError>("{} has the weight {}, and {} does not", has.folder().string(), name, lacks.folder().string());
    };
    for (const SavedTensor& t : first.index().tensors) {
      if (t.kind != StateKind::weight) continue;
      const auto found = other->index().find(StateKind::weight, t.name);
      if (!found) not_in(t.name, first, *other);
      const SavedTensor& o = other->index().tensors[static_cast<size_t>(*found)];
      if (o.shape != t.shape)
        fail<UsageError>("{} is {} in {} and {} in {}", t.name, t.shape.str(), first.folder().string(), o.shape.str(),
                         other->folder().string());
    }
    if (weights(other->index()) != weights(first.index()))
      for (const SavedTensor& t : other->index().tensors)
        if (t.kind == StateKind::weight && !first.index().find(StateKind::weight, t.name)) not_in(t.name, *other, first);
    for (const ConfigDifference& d : config_differences(first.index().config, other->index().config))
      if (is_of_the_function(d.key))
        fail<UsageError>("these are different models: {} is {} in {} and {} in {}", d.key, d.a.empty() ? "not given" : d.a,
                         first.folder().string(), d.b.empty() ? "not given" : d.b, other->folder().string());
  }
}

void CheckpointAverage::make_index(const AverageOptions& options) {
  const CheckpointIndex& last = readers_.back()->index();
  index_.content = CheckpointContent::weights;
  index_.hlat = options.hlat;
  index_.created = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  index_.step = last.step;
  index_.tokens = last.tokens;
  index_.config = last.config;
  nlohmann::ordered_json of = nlohmann::ordered_json::array();
  for (size_t i = 0; i < readers_.size(); ++i) {
    const CheckpointIndex& from = readers_[i]->index();
    of.push_back({{"path", fs::absolute(readers_[i]->folder()).lexically_normal().string()},
                  {"run", from.run},
                  {"step", from.step},
                  {"tokens", from.tokens},
                  {"weight", shares_[i]}});
  }
  index_.records.push_back({"average", 1, json_text(nlohmann::ordered_json{{"kind", name_of(kind_)}, {"of", of}})});
  index_.run = "average-" + checksum_text(checksum(index_.records.back().json));
  for (const SavedTensor& t : readers_.front()->index().tensors) {
    if (t.kind != StateKind::weight) continue;
    index_.tensors.push_back({t.name, StateKind::weight, options.dtype.value_or(of_masters() ? DType::bf16 : t.dtype), t.shape});
    sources_.emplace_back();
    for (const auto& reader : readers_) sources_.back().push_back(finest(reader->index(), kind_, t.name));
  }
}

uint64_t CheckpointAverage::bytes() const {
  uint64_t sum = 0;
  for (const SavedTensor& t : index_.tensors) sum += static_cast<uint64_t>(t.shape.numel()) * size_of(t.dtype);
  return sum;
}

fs::path CheckpointAverage::write(const fs::path& parent, int threads, const BytesDone& done) {
  const fs::path to = checkpoint_path(parent, index_.step);
  std::error_code error;
  if (fs::exists(to, error)) fail<UsageError>("{} is there already; give another folder", to.string());
  fs::create_directories(parent, error);
  if (error) fail_storage(error.value(), "cannot create " + parent.string());
  if (const uint64_t room = free_bytes(parent); room < bytes())
    fail_storage(ENOSPC,
                 fmt::format("{} has room for {}, and the average takes {}", parent.string(), format_bytes(room), format_bytes(bytes())));
  return write_checkpoint(
      parent, index_, [&](int32_t tensor, int64_t first, int64_t count, void* out) { average(tensor, first, count, out, threads); },
      kMaxFile, done);
}

void CheckpointAverage::average(int32_t tensor, int64_t first, int64_t count, void* to, int threads) {
  const std::vector<int32_t>& sources = sources_[static_cast<size_t>(tensor)];
  const auto type_of = [&](size_t i) { return readers_[i]->index().tensors[static_cast<size_t>(sources[i])].dtype; };
  for_all(readers_.size(), threads, [&](size_t i) {
    buffers_[i].resize(static_cast<size_t>(count) * size_of(type_of(i)));
    readers_[i]->read(sources[i], first, count, buffers_[i].data());
  });
  const double all = std::accumulate(shares_.begin(), shares_.end(), 0.0);
  const auto parts = static_cast<size_t>(threads);
  for_all(parts, threads, [&](size_t part) {
    const Part range = part_of(count, static_cast<int64_t>(part), threads);
    std::vector<double> sums(static_cast<size_t>(range.count), 0.0);
    for (size_t i = 0; i < readers_.size(); ++i)
      with_elements(type_of(i), buffers_[i].data(), [&](const auto* x) {
        for (size_t e = 0; e < sums.size(); ++e) sums[e] += shares_[i] * to_f64(x[static_cast<size_t>(range.begin) + e]);
      });
    const auto finish = [&](auto* out) {
      for (size_t e = 0; e < sums.size(); ++e) store(sums[e] / all, out[static_cast<size_t>(range.begin) + e]);
    };
    if (index_.tensors[static_cast<size_t>(tensor)].dtype == DType::bf16)
      finish(static_cast<bf16*>(to));
    else
      finish(static_cast<float*>(to));
  });
}

}  // namespace hlat
