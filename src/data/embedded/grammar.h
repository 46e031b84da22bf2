// A probabilistic grammar with memory, written as text:
//
//   @list f0 f1 ... = w w / v1 ... | w / v1 ...    records: each word w is feature f0, v1 ... are its other features
//   rule: 3* item item ... | item ...              alternatives with weights (1 when not given); indented lines continue
//
// Items: word (a terminal), <rule>, [variable=list] (choose a record, remember it, emit its f0), {variable.feature} (emit a feature of
// the remembered record), <rule:variable.feature> (expand `rule_VALUE`, VALUE being that feature). The first rule is the document.
//
// The alternatives of a choice start with different tokens (checked when built), so every token reveals the choices
// behind it: p(token | document so far) is their product, 1 for a forced token. The entropy is therefore exact.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "data/source.h"

namespace hlat {

class Grammar {
 public:
  static constexpr int32_t kEos = 0;  // ends every document

  explicit Grammar(std::string_view text);

  // Terminals in order of first use; words()[i] has id i + 1.
  const std::vector<std::string>& words() const { return words_; }
  double document_entropy() const { return entropy_; }  // nats
  double expected_length() const { return length_; }    // tokens, end of document included

  Document sample(RandomStream& random) const;

 private:
  enum class Kind { word, rule, bind, mention, dispatch };
  struct Item {
    Kind kind;
    size_t index;        // token | rule | variable | variable | dispatch
    size_t feature = 0;  // bind: the list; mention: the feature
  };
  struct Alternative {
    uint64_t weight = 1;
    std::vector<Item> items;
  };
  struct Rule {
    std::vector<Alternative> alternatives;
    uint64_t total = 0;                // of the weights
    std::map<int32_t, size_t> choice;  // first token -> alternative
  };
  struct List {
    std::string name;
    std::vector<std::string> features;
    std::vector<std::vector<std::string>> records;
    std::vector<std::vector<int32_t>> tokens;  // of the records; only for features that are emitted
  };
  struct Variable {
    std::string name;
    std::vector<size_t> lists;  // that may fill it; all have the same features
  };
  struct Dispatch {
    size_t variable = 0, feature = 0;
    std::map<std::string, size_t> rules;  // feature value -> rule
  };
  struct Binding {
    int list = -1;
    int record = -1;
    auto operator<=>(const Binding&) const = default;
  };
  using Env = std::vector<Binding>;       // by variable
  using EnvMass = std::map<Env, double>;  // probability of each way the variables can be filled
  struct Sampler;
  class Builder;
  friend class GrammarScorer;  // of the tests: the probabilities once more, from a parse

  size_t dispatch_rule(const Dispatch& d, const Env& env) const;
  int32_t mention_token(const Item& item, const Env& env) const;
  void analyse(const std::vector<Item>& items, EnvMass& mass);
  void analyse_rule(const Rule& rule, EnvMass& mass);

  std::vector<std::string> words_;
  std::vector<List> lists_;
  std::vector<Variable> variables_;
  std::vector<Dispatch> dispatches_;
  std::vector<Rule> rules_;  // [0] is the document
  std::vector<std::string> rule_names_;
  double entropy_ = 0, length_ = 0;
};

}  // namespace hlat
