// Collects what is wrong with a Config; validate.cc and validate_data.cc hold the rules.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/validate.h"
#include "config/value.h"

namespace hlat {

class Checker {
 public:
  Checker(const Config& config, std::set<std::string> skip) : config_(config), fields_(all_fields(config_)), skip_(std::move(skip)) {}

  void limits() {
    for (const Field& f : fields_) {
      if (skip_.contains(f.key()) || within_limits(f)) continue;
      found_.push_back({{f.key()}, fmt::format("must be {}", expectation(f))});
      skip_.insert(f.key());
    }
  }

  // `broken` returns what is wrong, or nothing. It runs only when all its keys hold values within their limits.
  template <class Broken>
  void rule(std::vector<std::string> keys, const Broken& broken) {
    for (const std::string& key : keys) {
      const bool known = std::any_of(fields_.begin(), fields_.end(), [&](const Field& f) { return f.key() == key; });
      HLAT_CHECK(known, "a rule names {}, which is no key", key);
      if (skip_.contains(key)) return;
    }
    std::string message = broken();
    if (!message.empty()) found_.push_back({std::move(keys), std::move(message)});
  }

  std::vector<Violation> take() { return std::move(found_); }

 private:
  Config config_;
  std::vector<Field> fields_;
  std::set<std::string> skip_;
  std::vector<Violation> found_;
};

void data_rules(Checker& check, const Config& c);

}  // namespace hlat
