#include "checkpoint/health_record.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace hlat {

namespace {

constexpr const char* kHealth = "health";

}  // namespace

Record to_record(const HealthRecord& health) {
  return {kHealth, 1, json_text(nlohmann::json{{"checked", health.checked}, {"passed", health.passed}})};
}

std::optional<HealthRecord> health_of(const CheckpointIndex& index) {
  const Record* record = index.find_record(kHealth);
  if (record == nullptr) return {};
  const nlohmann::json json = nlohmann::json::parse(record->json, nullptr, false);
  const auto number = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_number_integer() ? json[key].get<int64_t>() : 0;
  };
  return HealthRecord{.checked = number("checked"), .passed = number("passed")};
}

bool is_verified(const CheckpointIndex& index) {
  const std::optional<HealthRecord> health = health_of(index);
  return health && index.step > 0 && health->checked == index.step;
}

}  // namespace hlat
