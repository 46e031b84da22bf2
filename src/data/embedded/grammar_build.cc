// Reads the grammar text and checks what the exactness rests on: every reference is known and filled on every path,
// no rule contains itself, no alternative is empty, and alternatives start with different tokens.
#include <set>
#include <sstream>

#include "base/error.h"
#include "data/embedded/grammar.h"

namespace hlat {

class Grammar::Builder {
 public:
  explicit Builder(Grammar& g) : g_(g) {}

  void build(std::string_view text) {
    split_definitions(text);
    for (const auto& [name, body] : lists_text_) read_list(name, body);
    for (const auto& [name, body] : rules_text_) {
      HLAT_CHECK(rule_ids_.emplace(name, rule_ids_.size()).second, "rule '{}' is defined twice", name);
      g_.rule_names_.push_back(name);
    }
    for (const auto& [name, body] : rules_text_) read_rule(name, body);
    HLAT_CHECK(!g_.rules_.empty(), "a grammar without rules");
    resolve_features();
    firsts_.resize(g_.rules_.size());
    for (size_t r = 0; r < g_.rules_.size(); ++r) first_of_rule(r);
    std::vector<bool> filled(g_.variables_.size());
    check_filled(g_.rules_[0], filled);
  }

 private:
  using Definitions = std::vector<std::pair<std::string, std::string>>;

  void split_definitions(std::string_view text) {
    std::istringstream lines{std::string(text)};
    Definitions* current = nullptr;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] == '#') continue;
      if (line[0] == ' ') {
        HLAT_CHECK(current != nullptr, "'{}' continues nothing", line);
        current->back().second += line;
        continue;
      }
      const bool list = line[0] == '@';
      const size_t cut = list ? line.find(' ') : line.find(':');
      HLAT_CHECK(cut != std::string::npos, "'{}' is neither a list nor a rule", line);
      current = list ? &lists_text_ : &rules_text_;
      current->emplace_back(line.substr(list, cut - list), line.substr(cut + 1));
    }
  }

  void read_list(const std::string& name, const std::string& body) {
    List list{name, {}, {}, {}};
    std::istringstream in(body);
    std::string word;
    while (in >> word && word != "=") list.features.push_back(word);
    std::vector<std::string> heads, rest;
    bool after_slash = false;
    const auto close_group = [&] {
      for (const std::string& head : heads) {
        list.records.push_back({head});
        list.records.back().insert(list.records.back().end(), rest.begin(), rest.end());
        HLAT_CHECK(rest.size() + 1 == list.features.size(), "list '{}', '{}': {} features, not {}", name, head, rest.size() + 1,
                   list.features.size());
      }
      heads.clear(), rest.clear();
      after_slash = false;
    };
    while (in >> word) {
      if (word == "|")
        close_group();
      else if (word == "/")
        after_slash = true;
      else
        (after_slash ? rest : heads).push_back(word);
    }
    close_group();
    list.tokens.assign(list.records.size(), std::vector<int32_t>(list.features.size(), kEos));
    g_.lists_.push_back(std::move(list));
  }

  void read_rule(const std::string& name, const std::string& body) {
    Rule rule;
    rule.alternatives.emplace_back();
    std::istringstream in(body);
    for (std::string word; in >> word;) {
      Alternative& a = rule.alternatives.back();
      if (word == "|")
        rule.alternatives.emplace_back();
      else if (a.items.empty() && word.size() > 1 && word.back() == '*')
        a.weight = std::stoull(word);
      else
        a.items.push_back(read_item(word));
    }
    for (const Alternative& a : rule.alternatives) {
      HLAT_CHECK(!a.items.empty() && a.weight > 0, "rule '{}' has an empty alternative or a zero weight", name);
      rule.total += a.weight;
    }
    g_.rules_.push_back(std::move(rule));
  }

  Item read_item(const std::string& word) {
    if (word.size() < 3 || std::string_view("<[{").find(word[0]) == std::string_view::npos)
      return {Kind::word, static_cast<size_t>(token(word))};
    const std::string inside = word.substr(1, word.size() - 2);
    const size_t colon = inside.find_first_of(":=."), dot = inside.find('.');
    const std::string left = inside.substr(0, colon);
    if (word[0] == '<' && colon == std::string::npos) return {Kind::rule, rule_id(left)};
    HLAT_CHECK(colon != std::string::npos, "item '{}' is incomplete", word);
    if (word[0] == '[') {
      const size_t s = variable_id(left), l = list_id(inside.substr(colon + 1));
      g_.variables_[s].lists.push_back(l);
      return {Kind::bind, s, l};
    }
    HLAT_CHECK(dot != std::string::npos, "item '{}' names no feature", word);
    // Features are looked up when every list of the variable is known.
    if (word[0] == '{') {
      mentions_.push_back(inside.substr(dot + 1));
      return {Kind::mention, variable_id(left), mentions_.size() - 1};
    }
    g_.dispatches_.push_back({variable_id(inside.substr(colon + 1, dot - colon - 1)), 0, {}});
    dispatch_texts_.emplace_back(left, inside.substr(dot + 1));
    return {Kind::dispatch, g_.dispatches_.size() - 1};
  }

  void resolve_features() {
    for (const Variable& variable : g_.variables_) {
      HLAT_CHECK(!variable.lists.empty(), "variable '{}' is never filled", variable.name);
      for (const size_t l : variable.lists) {
        HLAT_CHECK(g_.lists_[l].features == g_.lists_[variable.lists[0]].features, "variable '{}' has lists with different features",
                   variable.name);
        name_feature(l, 0);
      }
    }
    for (Rule& rule : g_.rules_)
      for (Alternative& a : rule.alternatives)
        for (Item& item : a.items)
          if (item.kind == Kind::mention) {
            item.feature = feature_id(item.index, mentions_[item.feature]);
            for (const size_t l : g_.variables_[item.index].lists) name_feature(l, item.feature);
          }
    for (size_t i = 0; i < g_.dispatches_.size(); ++i) {
      Dispatch& d = g_.dispatches_[i];
      d.feature = feature_id(d.variable, dispatch_texts_[i].second);
      for (const size_t l : g_.variables_[d.variable].lists)
        for (const auto& record : g_.lists_[l].records)
          d.rules[record[d.feature]] = rule_id(dispatch_texts_[i].first + "_" + record[d.feature]);
    }
  }

  void name_feature(size_t list, size_t feature) {
    List& l = g_.lists_[list];
    for (size_t r = 0; r < l.records.size(); ++r) l.tokens[r][feature] = token(l.records[r][feature]);
  }

  // Tokens a rule can start with; also fills its table from first token to alternative.
  const std::set<int32_t>& first_of_rule(size_t r) {
    if (done_.contains(r)) return firsts_[r];
    HLAT_CHECK(open_.insert(r).second, "rule '{}' contains itself", g_.rule_names_[r]);
    Rule& rule = g_.rules_[r];
    for (size_t a = 0; a < rule.alternatives.size(); ++a) {
      const auto& items = rule.alternatives[a].items;
      for (const int32_t t : first_of_item(items[0])) {
        HLAT_CHECK(rule.choice.emplace(t, a).second, "rule '{}': two alternatives start with '{}'", g_.rule_names_[r],
                   g_.words_[static_cast<size_t>(t) - 1]);
        firsts_[r].insert(t);
      }
      for (size_t i = 1; i < items.size(); ++i) first_of_item(items[i]);  // looks into every rule, so a cycle is found
    }
    open_.erase(r);
    done_.insert(r);
    return firsts_[r];
  }

  std::set<int32_t> first_of_item(const Item& item) {
    std::set<int32_t> out;
    switch (item.kind) {
      case Kind::word: return {static_cast<int32_t>(item.index)};
      case Kind::rule: return first_of_rule(item.index);
      case Kind::dispatch:
        for (const auto& [value, rule] : g_.dispatches_[item.index].rules) out.merge(std::set(first_of_rule(rule)));
        return out;
      case Kind::mention:
        for (const size_t l : g_.variables_[item.index].lists)
          for (const auto& record : g_.lists_[l].tokens) out.insert(record[item.feature]);
        return out;
      case Kind::bind: break;
    }
    for (const auto& record : g_.lists_[item.feature].tokens)
      HLAT_CHECK(out.insert(record[0]).second, "list '{}' has a word twice", g_.lists_[item.feature].name);
    return out;
  }

  // `filled` holds the variables filled on every path so far.
  void check_filled(const Rule& rule, std::vector<bool>& filled) {
    std::vector<bool> all(filled.size(), true);
    for (const Alternative& a : rule.alternatives) {
      std::vector<bool> here = filled;
      for (const Item& item : a.items) {
        if (item.kind == Kind::bind) here[item.index] = true;
        if (item.kind == Kind::mention) HLAT_CHECK(here[item.index], "variable '{}' is used unfilled", g_.variables_[item.index].name);
        if (item.kind == Kind::rule) check_filled(g_.rules_[item.index], here);
        if (item.kind == Kind::dispatch) {
          const Dispatch& d = g_.dispatches_[item.index];
          HLAT_CHECK(here[d.variable], "variable '{}' decides a rule unfilled", g_.variables_[d.variable].name);
          std::vector<bool> common(here.size(), true);
          for (const auto& [value, r] : d.rules) {
            std::vector<bool> branch = here;
            check_filled(g_.rules_[r], branch);
            keep_common(common, branch);
          }
          here = common;
        }
      }
      keep_common(all, here);
    }
    filled = all;
  }

  static void keep_common(std::vector<bool>& all, const std::vector<bool>& branch) {
    for (size_t s = 0; s < all.size(); ++s) all[s] = all[s] && branch[s];
  }

  int32_t token(const std::string& word) {
    const auto [at, added] = tokens_.emplace(word, static_cast<int32_t>(g_.words_.size()) + 1);
    if (added) g_.words_.push_back(word);
    return at->second;
  }
  size_t rule_id(const std::string& name) const {
    HLAT_CHECK(rule_ids_.contains(name), "no rule '{}'", name);
    return rule_ids_.at(name);
  }
  size_t list_id(const std::string& name) const {
    size_t l = 0;
    while (l < g_.lists_.size() && g_.lists_[l].name != name) ++l;
    HLAT_CHECK(l < g_.lists_.size(), "no list '{}'", name);
    return l;
  }
  size_t variable_id(const std::string& name) {
    size_t s = 0;
    while (s < g_.variables_.size() && g_.variables_[s].name != name) ++s;
    if (s == g_.variables_.size()) g_.variables_.push_back({name, {}});
    return s;
  }
  size_t feature_id(size_t variable, const std::string& name) const {
    const auto& features = g_.lists_[g_.variables_[variable].lists[0]].features;
    size_t f = 0;
    while (f < features.size() && features[f] != name) ++f;
    HLAT_CHECK(f < features.size(), "variable '{}' has no feature '{}'", g_.variables_[variable].name, name);
    return f;
  }

  Grammar& g_;
  Definitions lists_text_, rules_text_;
  std::map<std::string, size_t> rule_ids_;
  std::map<std::string, int32_t> tokens_;
  std::vector<std::string> mentions_;                                // feature names of mention items, in order
  std::vector<std::pair<std::string, std::string>> dispatch_texts_;  // rule prefix, feature name
  std::vector<std::set<int32_t>> firsts_;
  std::set<size_t> open_, done_;
};

Grammar::Grammar(std::string_view text) {
  Builder(*this).build(text);
  EnvMass mass{{Env(variables_.size()), 1.0}};
  length_ = 1;  // the end of document
  analyse_rule(rules_[0], mass);
}

}  // namespace hlat
