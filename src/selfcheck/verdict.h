// What the checks of a model came to.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/config.h"

namespace hlat {

enum class CheckState : uint8_t { ok, failed, not_applicable };
std::string_view name_of(CheckState state);  // "ok", "FAILED", "-"

struct ModelVerdict {
  CheckState state = CheckState::ok;
  std::string words;  // the evidence: numbers, tensor, ranks

  static ModelVerdict ok(std::string words) { return {.state = CheckState::ok, .words = std::move(words)}; }
  static ModelVerdict failed(std::string words) { return {.state = CheckState::failed, .words = std::move(words)}; }
  static ModelVerdict none(std::string words) { return {.state = CheckState::not_applicable, .words = std::move(words)}; }
};

struct ModelCheck {
  std::string name;
  ModelVerdict verdict;
  double seconds = 0;
};

struct SelfCheckReport {
  std::string model;  // that was tried, in words
  std::vector<ModelCheck> checks;
  double seconds = 0;

  bool well() const;
  const ModelCheck* find(const std::string& name) const;  // null: it was not asked for
  std::string text() const;
  nlohmann::ordered_json json() const;
};

// "a, b and 3 more"
std::string some_of(const std::vector<std::string>& names, size_t most = 2);

}  // namespace hlat
