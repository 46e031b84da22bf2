#include "train/state_records.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "ops/kernel_choices.h"

namespace hlat {

namespace {

constexpr int kDataVersion = 1, kKernelsVersion = 1;

using Json = nlohmann::json;

void check_version(const Record& record, int known) {
  if (record.version > known)
    fail<UsageError>("its record of the {} has version {}; this program reads up to {}: use a newer hlat", record.name, record.version,
                     known);
}

}  // namespace

std::string own_record(const std::optional<DataState>& data, const std::string& kernels) {
  Json own = Json::object();
  if (data) own["data"] = data->save();
  if (!kernels.empty()) own["kernels"] = kernels;
  return own.empty() ? std::string() : json_text(own);
}

void join_records(CheckpointIndex& index, const std::vector<std::string>& own_records) {
  std::vector<DataState> positions;
  std::vector<std::string> kernels(own_records.size());  // by rank
  for (size_t rank = 0; rank < own_records.size(); ++rank) {
    if (own_records[rank].empty()) continue;
    const Json own = Json::parse(own_records[rank]);
    if (own.contains("data")) positions.push_back(DataState::parse(own["data"].get<std::string>()));
    if (own.contains("kernels")) kernels[rank] = own["kernels"].get<std::string>();
  }
  HLAT_CHECK(!positions.empty(), "no rank has a position in the data");
  index.records.push_back({"data", kDataVersion, json_text(Json{{"position", join(std::move(positions)).save()}})});
  index.records.push_back({"kernels", kKernelsVersion, merge_kernel_choices(kernels)});
}

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
