#include "train/state_records.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace hlat {

namespace {

constexpr int kDataVersion = 1;

using Json = nlohmann::json;

}  // namespace

std::string own_record(const std::optional<DataState>& data, const std::string& kernels) {
  Json own = Json::object();
  if (data) own["data"] = data->save();
  if (!kernels.empty()) own["kernels"] = kernels;
  return own.empty() ? std::string() : json_text(own);
}

void join_records(CheckpointIndex& index, const std::vector<std::string>& own_records) {
  std::vector<DataState> positions;
  for (const std::string& text : own_records) {
    if (text.empty()) continue;
    const Json own = Json::parse(text);
    if (own.contains("data")) positions.push_back(DataState::parse(own["data"].get<std::string>()));
  }
  HLAT_CHECK(!positions.empty(), "no rank has a position in the data");
  index.records.push_back({"data", kDataVersion, json_text(Json{{"position", join(std::move(positions)).save()}})});
}

DataState saved_position(const CheckpointIndex& index) {
  const Record* record = index.find_record("data");
  if (record == nullptr) fail<DamagedCheckpoint>("the checkpoint of step {} has no position in the data", index.step);
  if (record->version > kDataVersion)
    fail<UsageError>("its record of the data has version {}; this program reads up to {}: use a newer hlat", record->version, kDataVersion);
  const Json json = Json::parse(record->json, nullptr, false);
  if (!json.is_object() || !json.contains("position") || !json["position"].is_string())
    fail<DamagedCheckpoint>("the position in the data of the checkpoint of step {} cannot be read", index.step);
  DataState state = DataState::parse(json["position"].get<std::string>());
  if (state.step() != index.step || state.first_lane != 0)
    fail<DamagedCheckpoint>("the data of the checkpoint of step {} stands at step {}", index.step, state.step());
  return state;
}

std::string saved_kernels(const CheckpointIndex& /*index*/, int /*rank*/) { return {}; }

}  // namespace hlat
