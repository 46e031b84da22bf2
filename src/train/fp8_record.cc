#include "train/fp8_record.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fp8.h"
#include "base/json_text.h"
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

// False: the record has not all of them.
bool read_values(const Fp8Json& json, const ParamStore& params, Fp8Values& values) {
  const Fp8State& state = params.fp8_state();
  for (const ParamId id : state.params())
    for (const Fp8Role role : kFp8AllRoles) {
      const std::string& name = params.spec(id).name;
      const std::string key(name_of(role));
      if (!json.contains(name) || !json[name].contains(key)) return false;
      const Fp8Json& own = json[name][key];
      const auto past = own.at("history").get<std::vector<float>>();
      const DType type = role == Fp8Role::gradient ? params.precision().fp8_grad : DType::f8e4m3;
      const int exponent = own.at("exponent").get<int>() + other_range(own.at("type").get<std::string>(), type);
      if (past.size() != static_cast<size_t>(kFp8History) || std::abs(exponent) > kFp8Exponent) return false;
      const auto unit = static_cast<size_t>(state.unit(id, role));
      values.scales[unit * kFp8Scale] = std::ldexp(1.0f, exponent);
      values.scales[unit * kFp8Scale + kFp8Inverse] = std::ldexp(1.0f, -exponent);
      std::copy(past.begin(), past.end(), values.history.begin() + static_cast<int64_t>(unit) * kFp8History);
    }
  return true;
}

}  // namespace

std::string own_fp8(const Executor& executor) {
  const ParamStore& params = executor.params();
  const MeshCoord coord = executor.mesh().coord();
  if (!params.precision().fp8 || coord.dp != 0 || coord.tp != 0) return {};
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
          {"type", name_of(role == Fp8Role::gradient ? params.precision().fp8_grad : DType::f8e4m3)}};
    }
  return json_text(json);
}

std::string join_fp8(const std::vector<std::string>& parts) {
  Fp8Json all = Fp8Json::object();
  for (const std::string& part : parts)
    if (!part.empty()) all.update(Fp8Json::parse(part));
  return all.empty() ? std::string() : json_text(all);
}

bool restore_fp8(const CheckpointIndex& index, const Executor& executor) {
  const ParamStore& params = executor.params();
  if (!params.precision().fp8) return true;
  const Record* record = index.find_record("fp8");
  if (record != nullptr) check_version(*record, kFp8Version);
  bool scales = false;
  if (record != nullptr) try {
      const Fp8State& state = params.fp8_state();
      Fp8Values values(state);
      scales = read_values(Fp8Json::parse(record->json), params, values);
      if (scales) {
        state.start(executor.ops(), 1);  // limits; the rest follows
        executor.device().upload(state.scales, values.scales.data());
        executor.device().upload(state.history, values.history.data());
      }
    } catch (const nlohmann::json::exception& e) {
      fail<DamagedCheckpoint>("the FP8 scales of the checkpoint of step {} cannot be read: {}", index.step, e.what());
    }
  executor.weights_loaded(scales);
  return scales;
}

}  // namespace hlat
