#include "record/run_curves.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/median.h"

namespace hlat {

namespace {

using LineJson = nlohmann::json;

constexpr size_t kMostCurves = 500;  // keys that are followed: a file of something else may have any number

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

double number_in(const LineJson& value) { return value.is_number() ? value.get<double>() : kNotKnown; }
bool is_measure(const LineJson& value) { return value.is_number() || value.is_null(); }

class CurveReader {
 public:
  void line(const std::string& text) {
    const LineJson json = LineJson::parse(text, nullptr, false);
    const auto is_count = [&](const char* key) { return json.contains(key) && json[key].is_number_integer(); };
    if (!json.is_object() || !is_count("step") || !is_count("tokens")) {
      ++out_.damaged;
      return;
    }
    step_ = json["step"].get<int64_t>();
    if (!out_.step.empty() && step_ <= out_.step.back()) go_back();
    out_.step.push_back(step_);
    out_.tokens.push_back(json["tokens"].get<int64_t>());
    for (const auto& [key, value] : json.items()) {
      if (key == "step" || key == "tokens") continue;
      if (is_measure(value)) add(key, value);
      if (key == "monitors" && value.is_object()) monitors(value);
    }
  }
  RunCurves take() { return std::move(out_); }

 private:
  void add(const std::string& key, const LineJson& value) {
    if (out_.curves.size() < kMostCurves || out_.curves.contains(key)) out_.curves[key].add(step_, number_in(value));
  }

  void monitors(const LineJson& object) {
    for (const auto& [key, value] : object.items()) {
      if (is_measure(value)) add("monitors/" + key, value);
      if (value.is_object())
        for (const auto& [part, number] : value.items())
          if (is_measure(number)) add("monitors/" + key + "/" + part, number);
      if (!value.is_array() || value.empty() || (out_.lists.size() >= kMostCurves && !out_.lists.contains(key))) continue;
      ListCurve& list = out_.lists[key];
      list.step.push_back(step_);
      std::transform(value.begin(), value.end(), std::back_inserter(list.values.emplace_back()), number_in);
    }
  }

  void go_back() {
    const auto kept = static_cast<size_t>(std::lower_bound(out_.step.begin(), out_.step.end(), step_) - out_.step.begin());
    out_.step.resize(kept);
    out_.tokens.resize(kept);
    for (auto& [key, curve] : out_.curves) curve.cut_from(step_);
    for (auto& [key, list] : out_.lists) list.cut_from(step_);
  }

  RunCurves out_;
  int64_t step_ = 0;
};

}  // namespace

bool Curve::has_values() const {
  return std::any_of(value.begin(), value.end(), [](double v) { return std::isfinite(v); });
}

void Curve::cut_from(int64_t first) {
  const auto kept = static_cast<size_t>(std::lower_bound(step.begin(), step.end(), first) - step.begin());
  step.resize(kept);
  value.resize(kept);
}

std::vector<double> Curve::values_at(const std::vector<int64_t>& at) const {
  std::vector<double> out(at.size(), kNotKnown);
  for (size_t i = 0, k = 0; i < at.size(); ++i) {
    while (k < step.size() && step[k] < at[i]) ++k;
    if (k < step.size() && step[k] == at[i]) out[i] = value[k];
  }
  return out;
}

void ListCurve::cut_from(int64_t first) {
  const auto kept = static_cast<size_t>(std::lower_bound(step.begin(), step.end(), first) - step.begin());
  step.resize(kept);
  values.resize(kept);
}

const Curve& RunCurves::curve(const std::string& key) const {
  static const Curve none;
  const auto found = curves.find(key);
  return found == curves.end() ? none : found->second;
}

RunCurves read_curves(const std::filesystem::path& file) {
  CurveReader reader;
  std::ifstream in(file, std::ios::binary);
  for (std::string line; std::getline(in, line) && !in.eof();)  // a line without its end is being written
    reader.line(line);
  return reader.take();
}

double finite_median(std::vector<double> values) {
  std::erase_if(values, [](double v) { return !std::isfinite(v); });
  return values.empty() ? kNotKnown : median(std::move(values));
}

double usual_value(const std::vector<double>& by_step) {
  return finite_median(by_step.size() < 2 ? by_step : std::vector<double>(by_step.begin() + 1, by_step.end()));
}

}  // namespace hlat
