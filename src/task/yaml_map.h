// A map of a task file, read key by key. What is wrong, a value of the wrong kind or a key that nobody asked for, becomes a problem with
// its line; reading goes on with the fallback.
#pragma once

#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "task/problems.h"

namespace hlat {

class YamlMap {
 public:
  // `title` names the map in messages: "task", "`data`".
  YamlMap(const YAML::Node& node, std::string file, std::string title, Problems& problems);

  bool has(const std::string& key);         // a key whose value is null counts as absent
  YAML::Node node(const std::string& key);  // undefined: absent
  std::string text(const std::string& key, const std::string& fallback = "");
  std::string required(const std::string& key);  // a text
  int64_t integer(const std::string& key, int64_t fallback, int64_t least);
  double number(const std::string& key, double fallback, double least);
  bool flag(const std::string& key, bool fallback);
  std::vector<std::string> texts(const std::string& key);              // a list of texts, or one text
  YamlMap map(const std::string& key);                                 // empty where it is absent
  std::vector<YamlMap> maps(const std::string& key);                   // a list of maps
  YamlMap item(const std::string& key, const YAML::Node& node) const;  // a map within the list at `key`
  // One of `names`; its place among them.
  size_t choice(const std::string& key, const std::vector<std::string_view>& names, size_t fallback);

  void problem(const std::string& key, const std::string& what);  // at the line of the key, or of the map where it is absent
  void problem(const YAML::Node& at, const std::string& what);
  void refuse_unknown();  // problems for keys that were not asked for

 private:
  template <class T>
  T scalar(const std::string& key, T fallback, std::string_view wanted);
  std::string where(const YAML::Node& at) const;

  YAML::Node node_;
  std::string file_;
  std::string title_;
  Problems* problems_;
  std::map<std::string, YAML::Node> keys_;  // where each stands
  std::vector<std::string> asked_;
};

}  // namespace hlat
