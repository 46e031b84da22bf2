#include "train/fp8_record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fp8.h"
#include "base/json_text.h"
#include "config/linear_shapes.h"
#include "train/state_records.h"

namespace hlat {

namespace {

using Fp8Json = nlohmann::json;

constexpr std::array kFp8AllRoles = {Fp8Role::input, Fp8Role::gradient, Fp8Role::weight};

struct Fp8Values {
  std::vector<float> scales, history;
  explicit Fp8Values(const Fp8State& s)
      : scales(static_cast<size_t>(s.units() * kFp8Scale)), history(static_cast<size_t>(s.units() * kFp8History)) {}
};

// A scale fills half the range of its type: that of E5M2 is 2^7 times that of E4M3, exactly.
int other_range(std::string_view saved, DType type) {
  static_assert(kLargestE5M2 == 128 * kLargestE4M3);
  const bool wide = type == DType::f8e5m2, was_wide = saved == name_of(DType::f8e5m2);
  return wide == was_wide ? 0 : wide ? 7 : -7;
}

Fp8Saved read_saved(const Fp8Json& json, DType type) {
  Fp8Saved saved{.exponent = json.at("exponent").get<int>() + other_range(json.at("type").get<std::string>(), type),
                 .history = json.at("history").get<std::vector<float>>()};
  saved.exponent = std::clamp(saved.exponent, -kFp8Exponent, kFp8Exponent);
  if (saved.history.size() != static_cast<size_t>(kFp8History)) fail<Error>("a history of {} steps", saved.history.size());
  return saved;
}

DType type_of(Fp8Role role, const Precision& precision) { return role == Fp8Role::gradient ? precision.fp8_grad : DType::f8e4m3; }

}  // namespace

std::string own_fp8(const Executor& executor) {
  const ParamStore& params = executor.params();
  const MeshCoord coord = executor.mesh().coord();
  if (!params.precision().fp8 || executor.fp8().uncalibrated() || coord.dp != 0 || coord.tp != 0) return {};
  const Fp8State& state = params.fp8_state();
  Fp8Values values(state);
  executor.device().download(values.scales.data(), state.scales);
  executor.device().download(values.history.data(), state.history);
  Fp8Json json = Fp8Json::object();
  for (const ParamId id : state.params())
    for (const Fp8Role role : kFp8AllRoles) {
      const int64_t unit = state.unit(id, role);
      const auto past = values.history.begin() + unit * kFp8History;
      json[params.spec(id).name][std::string(name_of(role))] = {
          {"exponent", std::ilogb(values.scales[static_cast<size_t>(unit * kFp8Scale)])},
          {"history", std::vector<float>(past, past + kFp8History)},
          {"type", name_of(type_of(role, params.precision()))}};
    }
  return json_text(json);
}

std::string join_fp8(const std::vector<std::string>& parts) {
  Fp8Json all = Fp8Json::object();
  for (const std::string& part : parts)
    if (!part.empty()) all.update(Fp8Json::parse(part));
  return all.empty() ? std::string() : json_text(all);
}

std::optional<Fp8Scales> saved_fp8(const CheckpointIndex& index, const Config& config) {
  const Precision precision = precision_of(config);
  const Record* record = index.find_record("fp8");
  if (!precision.fp8 || record == nullptr) return {};
  check_version(*record, kFp8Version);
  Fp8Scales scales;
  try {
    const Fp8Json json = Fp8Json::parse(record->json);
    for (int64_t layer = 0; layer < config.model.layers; ++layer)
      for (const LinearShape& l : linear_shapes(config.model)) {
        if (!fp8_fits(l.outputs, l.inputs)) continue;
        const std::string name = fmt::format("layers.{}.{}", layer, l.name);
        if (!json.contains(name)) return {};
        for (const Fp8Role role : kFp8AllRoles)
          scales[name][static_cast<size_t>(role)] = read_saved(json.at(name).at(std::string(name_of(role))), type_of(role, precision));
      }
  } catch (const std::exception& e) {
    fail<DamagedCheckpoint>("the FP8 scales of the checkpoint of step {} cannot be read: {}", index.step, e.what());
  }
  return scales;
}

void restore_fp8(const std::optional<Fp8Scales>& scales, Executor& executor) {
  const ParamStore& params = executor.params();
  if (!params.precision().fp8 || !scales) return executor.weights_loaded(Fp8Start::measured);
  const Fp8State& state = params.fp8_state();
  Fp8Values values(state);
  for (const ParamId id : state.params())
    for (const Fp8Role role : kFp8AllRoles) {
      const Fp8Saved& saved = scales->at(params.spec(id).name)[static_cast<size_t>(role)];
      const auto unit = static_cast<size_t>(state.unit(id, role));
      values.scales[unit * kFp8Scale] = std::ldexp(1.0f, saved.exponent);
      values.scales[unit * kFp8Scale + kFp8Inverse] = std::ldexp(1.0f, -saved.exponent);
      std::ranges::copy(saved.history, values.history.begin() + static_cast<int64_t>(unit) * kFp8History);
    }
  state.start(executor.ops(), 1);  // limits; the rest follows
  executor.device().upload(state.scales, values.scales.data());
  executor.device().upload(state.history, values.history.data());
  executor.weights_loaded(Fp8Start::saved);
}

}  // namespace hlat
