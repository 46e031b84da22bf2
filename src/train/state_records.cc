#include "train/state_records.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"
#include "ops/kernel_choices.h"
#include "train/fp8_record.h"

namespace hlat {

namespace {

constexpr int kDataVersion = 1, kKernelsVersion = 1, kLossVersion = 1, kAlarmsVersion = 1;

using Json = nlohmann::json;

// An empty one where the checkpoint has none.
template <class State>
State saved_state(const CheckpointIndex& index, const char* name, int version) {
  const Record* record = index.find_record(name);
  if (record == nullptr) return {};
  check_version(*record, version);
  try {
    return State::parse(record->json);
  } catch (const Error& e) {
    fail<DamagedCheckpoint>("checkpoint of step {}: {}", index.step, e.what());
  }
}

}  // namespace

void check_version(const Record& record, int known) {
  if (record.version > known)
    fail<UsageError>("its record of the {} has version {}; this program reads up to {}: use a newer hlat", record.name, record.version,
                     known);
}

std::string own_record(const OwnPosition& position, const std::string& kernels, const std::string& fp8) {
  Json own = Json::object();
  if (const auto* first = std::get_if<DataState>(&position)) own["data"] = first->save();
  if (const auto* lanes = std::get_if<RankLanes>(&position)) own["lanes"] = lanes->save();
  if (!kernels.empty()) own["kernels"] = kernels;
  if (!fp8.empty()) own["fp8"] = fp8;
  return own.empty() ? std::string() : json_text(own);
}

void join_records(CheckpointIndex& index, const std::vector<std::string>& own_records) {
  std::optional<DataState> first;
  std::vector<RankLanes> others;
  std::vector<std::string> kernels(own_records.size()), fp8;  // kernels: by rank
  for (size_t rank = 0; rank < own_records.size(); ++rank) {
    if (own_records[rank].empty()) continue;
    const Json own = Json::parse(own_records[rank]);
    if (own.contains("data")) first = DataState::parse(own["data"].get<std::string>());
    if (own.contains("lanes")) others.push_back(RankLanes::parse(own["lanes"].get<std::string>()));
    if (own.contains("kernels")) kernels[rank] = own["kernels"].get<std::string>();
    if (own.contains("fp8")) fp8.push_back(own["fp8"].get<std::string>());
  }
  if (const std::string scales = join_fp8(fp8); !scales.empty()) index.records.push_back({"fp8", kFp8Version, scales});
  if (const std::string merged = merge_kernel_choices(kernels); !merged.empty())
    index.records.push_back({"kernels", kKernelsVersion, merged});
  HLAT_CHECK(first.has_value(), "no rank has a position in the data");
  index.records.push_back({"data", kDataVersion, json_text(Json{{"position", join(std::move(*first), std::move(others)).save()}})});
}

Record to_record(const LossState& state) { return {"loss", kLossVersion, state.save()}; }
Record to_record(const AlarmState& state) { return {"alarms", kAlarmsVersion, state.save()}; }

LossState saved_loss(const CheckpointIndex& index) { return saved_state<LossState>(index, "loss", kLossVersion); }
AlarmState saved_alarms(const CheckpointIndex& index) { return saved_state<AlarmState>(index, "alarms", kAlarmsVersion); }

DataState saved_position(const CheckpointIndex& index) {
  const Record* record = index.find_record("data");
  if (record == nullptr) fail<DamagedCheckpoint>("the checkpoint of step {} has no position in the data", index.step);
  check_version(*record, kDataVersion);
  const Json json = Json::parse(record->json, nullptr, false);
  if (!json.is_object() || !json.contains("position") || !json["position"].is_string())
    fail<DamagedCheckpoint>("the position in the data of the checkpoint of step {} cannot be read", index.step);
  DataState state = DataState::parse(json["position"].get<std::string>());
  if (state.step() != index.step || state.first_lane != 0)
    fail<DamagedCheckpoint>("the data of the checkpoint of step {} stands at step {}", index.step, state.step());
  return state;
}

std::string saved_kernels(const CheckpointIndex& index, int rank) {
  const Record* record = index.find_record("kernels");
  if (record == nullptr) return {};
  check_version(*record, kKernelsVersion);
  try {
    return kernel_choices_for(rank, record->json);
  } catch (const Error& e) {
    fail<DamagedCheckpoint>("checkpoint of step {}: {}", index.step, e.what());
  }
}

}  // namespace hlat
