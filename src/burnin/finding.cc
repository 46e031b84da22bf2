#include "burnin/finding.h"

#include <fmt/format.h>

#include <algorithm>

namespace hlat {

std::string Finding::text() const { return fmt::format("rank {} on {}: {} {}", rank, host, part, words); }

std::vector<Finding> CheckReport::findings() const {
  std::vector<Finding> all;
  for (const PartReport& part : parts) all.insert(all.end(), part.findings.begin(), part.findings.end());
  std::stable_sort(all.begin(), all.end(), [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return all;
}

bool CheckReport::well() const {
  const std::vector<Finding> all = findings();
  return std::none_of(all.begin(), all.end(), [](const Finding& f) { return f.severity == Severity::fault; });
}

std::string CheckReport::verdict() const {
  std::string text;
  for (const Finding& f : findings()) text += (f.severity == Severity::warning ? "warning: " : "") + f.text() + "\n";
  if (well()) text += hosts.size() == 1 ? "the rank is well\n" : fmt::format("all {} ranks are well\n", hosts.size());
  return text;
}

nlohmann::ordered_json CheckReport::json() const {
  nlohmann::ordered_json j{{"well", well()}, {"ranks", hosts.size()}, {"hosts", hosts}};
  j["findings"] = nlohmann::ordered_json::array();
  for (const Finding& f : findings())
    j["findings"].push_back({{"severity", f.severity == Severity::fault ? "fault" : "warning"},
                             {"part", f.part},
                             {"rank", f.rank},
                             {"host", f.host},
                             {"words", f.words}});
  for (const PartReport& part : parts) {
    j[part.name] = part.json.is_object() ? part.json : nlohmann::ordered_json::object();
    j[part.name]["seconds"] = part.seconds;
  }
  return j;
}

}  // namespace hlat
