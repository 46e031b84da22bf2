// The probability of a text under a grammar, from its ids alone: an LL(1) parser with its own stack, where the grammar itself samples
// recursively and adds up on the way.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "base/error.h"
#include "data/embedded/grammar.h"

namespace hlat {

class GrammarScorer {
 public:
  // -log p of each token. Error if the ids are not one document of this grammar.
  static std::vector<double> surprisals(const Grammar& grammar, std::span<const int32_t> ids) {
    using Kind = Grammar::Kind;
    using Item = Grammar::Item;
    std::vector<double> out;
    Grammar::Env env(grammar.variables_.size());
    std::vector<Item> stack{{Kind::word, static_cast<size_t>(Grammar::kEos)}, {Kind::rule, 0}};  // what must still come, next one last
    for (const int32_t token : ids) {
      double nats = 0;
      for (bool found = false; !found;) {
        if (stack.empty()) fail("token {} (id {}) follows the end of the document", out.size(), token);
        const Item item = stack.back();
        stack.pop_back();
        bool wrong = false;
        if (item.kind == Kind::word) {
          found = true;
          wrong = item.index != static_cast<size_t>(token);
        } else if (item.kind == Kind::mention) {
          found = true;
          wrong = grammar.mention_token(item, env) != token;
        } else if (item.kind == Kind::bind) {
          const Grammar::List& list = grammar.lists_[item.feature];
          size_t record = 0;
          while (record < list.tokens.size() && list.tokens[record][0] != token) ++record;
          found = true;
          wrong = record == list.tokens.size();
          env[item.index] = {static_cast<int>(item.feature), static_cast<int>(record)};
          nats += std::log(static_cast<double>(list.tokens.size()));
        } else {
          const Grammar::Rule& rule =
              grammar.rules_[item.kind == Kind::rule ? item.index : grammar.dispatch_rule(grammar.dispatches_[item.index], env)];
          const auto choice = rule.choice.find(token);
          wrong = choice == rule.choice.end();
          if (!wrong) {
            const Grammar::Alternative& a = rule.alternatives[choice->second];
            nats -= std::log(static_cast<double>(a.weight) / static_cast<double>(rule.total));
            stack.insert(stack.end(), a.items.rbegin(), a.items.rend());
          }
        }
        if (wrong) fail("token {} (id {}) cannot stand there in this grammar", out.size(), token);
      }
      out.push_back(nats);
    }
    if (!stack.empty()) fail("the document ends too early, after {} tokens", ids.size());
    return out;
  }
};

}  // namespace hlat
