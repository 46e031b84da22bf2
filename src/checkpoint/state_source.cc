#include "checkpoint/state_source.h"

#include <algorithm>
#include <cstring>

#include "base/bf16.h"
#include "param/param_names.h"

namespace hlat {
namespace {

void add_once(std::vector<std::string>& lines, std::string line) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
}

std::string_view plural(StateKind kind) {
  return kind == StateKind::weight ? "weights" : kind == StateKind::master ? "masters" : "moments";
}

// Empty: as it was saved.
std::string conversion(StateKind kind, DType type, const SavedTensor& from) {
  const bool same_kind = from.kind == kind, same_type = from.dtype == type;
  if (same_kind && same_type) return {};
  const std::string what = fmt::format("{} {}, ", plural(kind), name_of(type));
  if (same_type) return what + fmt::format("from the {}: exact", plural(from.kind));
  const std::string source =
      same_kind ? std::string(name_of(from.dtype)) : fmt::format("the {} {}", name_of(from.dtype), plural(from.kind));
  return what +
         (type == DType::bf16 ? fmt::format("rounded from {} to the nearest", source) : fmt::format("widened from {}: exact", source));
}

DType stat_of(DType weight) { return weight == DType::f64 ? DType::f64 : DType::f32; }

class Finder {
 public:
  Finder(const CheckpointIndex& index, const ParamStore& params, LoadWhat what) : index_(index), params_(params), what_(what) {
    for (auto& of_kind : result_.tensors) of_kind.assign(static_cast<size_t>(params.size()), StateSources::kZero);
    result_.used.assign(index.tensors.size(), 0);
  }

  StateSources find() && {
    if (params_.buckets().empty()) return std::move(result_);
    const Bucket& any = params_.buckets().front();
    const bool trains = any.m.defined();
    if (what_ == LoadWhat::training && index_.content == CheckpointContent::weights) {
      std::fill(result_.used.begin(), result_.used.end(), 1);  // this one problem is all there is to say
      result_.problems.emplace_back("it has weights alone, no optimizer state: checkpoint.init_from starts a new run with them");
      return std::move(result_);
    }
    for (ParamId id = 0; id < params_.size(); ++id) {
      find_weight(id, trains);
      if (trains && params_.precision().master && !params_.fp8(id))
        take(id, StateKind::master, stat_of(params_.precision().weight), {StateKind::master, StateKind::weight});
      if (trains && what_ == LoadWhat::training)
        for (const StateKind kind : {StateKind::moment1, StateKind::moment2}) take(id, kind, any.m.dtype, {kind});
    }
    if (trains && what_ == LoadWhat::weights) result_.conversions.emplace_back("no moments: the optimizer starts anew");
    return std::move(result_);
  }

 private:
  void find_weight(ParamId id, bool trains) {
    const std::string& name = params_.spec(id).name;
    const bool f32 = params_.fp8(id) && params_.precision().master;  // what is loaded for a weight in FP8 is its master
    const DType type = f32 ? DType::f32 : params_.precision().weight;
    const auto weight = index_.find(StateKind::weight, name);
    if (weight) result_.used[static_cast<size_t>(*weight)] = 1;
    const bool from_master = type == DType::f32 && !(weight && index_.tensors[static_cast<size_t>(*weight)].dtype == DType::f32);
    if (from_master)
      take(id, StateKind::weight, type, {StateKind::master, StateKind::weight});
    else
      take(id, StateKind::weight, type, {StateKind::weight});
    if (trains && !from_master && !params_.precision().master && index_.find(StateKind::master, name))
      add_once(result_.conversions, "no masters: this precision has none");
  }

  // Where the state of a parameter lies: under its own name, or for the head of a tied model under the embedding's.
  std::string_view saved_name(ParamId id) {
    const std::string& name = params_.spec(id).name;
    if (name != kHeadName || index_.find(StateKind::weight, kHeadName) || !index_.find(StateKind::weight, kEmbeddingName)) return name;
    if (what_ == LoadWhat::training) {
      add_once(result_.problems, fmt::format("{}: the checkpoint's model is tied and has no such matrix, this one (model.tied: false) has; "
                                             "checkpoint.init_from starts a new run in which it begins as a copy of the embedding",
                                             name));
      return {};
    }
    add_once(result_.conversions, fmt::format("{} from the embedding, to which the checkpoint ties it", name));
    return kEmbeddingName;
  }

  // The first of the kinds that the checkpoint has becomes `kind` of the parameter.
  void take(ParamId id, StateKind kind, DType type, std::initializer_list<StateKind> from) {
    const ParamSpec& spec = params_.spec(id);
    const std::string_view name = saved_name(id);
    if (name.empty()) return;
    for (const StateKind k : from) {
      const auto number = index_.find(k, name);
      if (!number) continue;
      const SavedTensor& saved = index_.tensors[static_cast<size_t>(*number)];
      if (saved.shape != spec.slice.global)
        return add_once(result_.problems,
                        fmt::format("{}: {} in the checkpoint, {} in this model", spec.name, saved.shape.str(), spec.slice.global.str()));
      result_.tensors[static_cast<size_t>(kind)][static_cast<size_t>(id)] = *number;
      if (std::string words = conversion(kind, type, saved); !words.empty()) add_once(result_.conversions, std::move(words));
      return;
    }
    const std::string what = index_.find(StateKind::weight, name) ? fmt::format("{} of {}", plural(kind), spec.name) : spec.name;
    add_once(result_.problems, fmt::format("{}: {} in this model, not in the checkpoint", what, spec.slice.global.str()));
  }

  const CheckpointIndex& index_;
  const ParamStore& params_;
  LoadWhat what_;
  StateSources result_;
};

}  // namespace

StateSources find_sources(const CheckpointIndex& index, const ParamStore& params, LoadWhat what) {
  return Finder(index, params, what).find();
}

std::vector<std::string> unused_weights(const CheckpointIndex& index, const std::vector<uint8_t>& used) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < index.tensors.size(); ++i) {
    const SavedTensor& t = index.tensors[i];
    if (t.kind != StateKind::weight || used[i] != 0) continue;
    const std::string_view why =
        t.name == kHeadName ? ", whose head is the embedding (model.tied: true): the head's own matrix would be lost" : "";
    lines.push_back(fmt::format("{}: {} in the checkpoint, not in this model{}", t.name, t.shape.str(), why));
  }
  return lines;
}

void convert_elements(void* to, DType to_type, const void* from, DType from_type, int64_t count) {
  if (to_type == from_type) {
    std::memcpy(to, from, static_cast<size_t>(count) * size_of(to_type));
  } else if (to_type == DType::bf16 && from_type == DType::f32) {
    std::transform(static_cast<const float*>(from), static_cast<const float*>(from) + count, static_cast<bf16*>(to), to_bf16);
  } else if (to_type == DType::f32 && from_type == DType::bf16) {
    std::transform(static_cast<const bf16*>(from), static_cast<const bf16*>(from) + count, static_cast<float*>(to),
                   [](bf16 x) { return to_float(x); });
  } else {
    HLAT_CHECK(false, "no conversion from {} to {}", name_of(from_type), name_of(to_type));
  }
}

}  // namespace hlat
