// Walks over a built grammar: sampling and the exact entropy.
#include "data/embedded/grammar.h"

#include <cmath>

namespace hlat {

size_t Grammar::dispatch_rule(const Dispatch& d, const Env& env) const {
  const Binding b = env[d.variable];
  return d.rules.at(lists_[static_cast<size_t>(b.list)].records[static_cast<size_t>(b.record)][d.feature]);
}

int32_t Grammar::mention_token(const Item& item, const Env& env) const {
  const Binding b = env[item.index];
  return lists_[static_cast<size_t>(b.list)].tokens[static_cast<size_t>(b.record)][item.feature];
}

struct Grammar::Sampler {
  const Grammar& grammar;
  RandomStream& random;
  Env env;
  Document out;
  double pending = 0;  // surprisal of choices made since the last token

  void emit(int32_t token) {
    out.tokens.push_back(token);
    out.surprisals.push_back(pending);
    pending = 0;
  }

  void expand(const Rule& rule) {
    uint64_t left = random.below(rule.total);
    for (const Alternative& a : rule.alternatives) {
      if (left >= a.weight) {
        left -= a.weight;
        continue;
      }
      pending -= std::log(static_cast<double>(a.weight) / static_cast<double>(rule.total));
      for (const Item& item : a.items) expand(item);
      return;
    }
  }

  void expand(const Item& item) {
    switch (item.kind) {
      case Kind::word: return emit(static_cast<int32_t>(item.index));
      case Kind::rule: return expand(grammar.rules_[item.index]);
      case Kind::mention: return emit(grammar.mention_token(item, env));
      case Kind::dispatch: return expand(grammar.rules_[grammar.dispatch_rule(grammar.dispatches_[item.index], env)]);
      case Kind::bind: break;
    }
    const List& list = grammar.lists_[item.feature];
    const uint64_t record = random.below(list.records.size());
    env[item.index] = {static_cast<int>(item.feature), static_cast<int>(record)};
    pending += std::log(static_cast<double>(list.records.size()));
    emit(list.tokens[record][0]);
  }
};

Document Grammar::sample(RandomStream& random) const {
  Sampler s{*this, random, Env(variables_.size()), {}, 0};
  s.expand(rules_[0]);
  s.emit(kEos);
  return std::move(s.out);
}

// Expected entropy and length are sums over items of (probability to get there) x (entropy or length of the item).
// The probability depends on what was remembered only through dispatches, so only their variables stay in the Env.
void Grammar::analyse(const std::vector<Item>& items, EnvMass& mass) {
  for (const Item& item : items) {
    double total = 0;
    for (const auto& [env, p] : mass) total += p;
    if (item.kind == Kind::rule) {
      analyse_rule(rules_[item.index], mass);
    } else if (item.kind == Kind::dispatch) {
      std::map<size_t, EnvMass> by_rule;
      for (const auto& [env, p] : mass) by_rule[dispatch_rule(dispatches_[item.index], env)][env] += p;
      mass.clear();
      for (auto& [rule, part] : by_rule) {
        analyse_rule(rules_[rule], part);
        for (const auto& [env, p] : part) mass[env] += p;
      }
    } else {
      length_ += total;
    }
    if (item.kind != Kind::bind) continue;
    const auto records = static_cast<double>(lists_[item.feature].records.size());
    entropy_ += total * std::log(records);
    bool matters = false;
    for (const Dispatch& d : dispatches_) matters |= d.variable == item.index;
    if (!matters) continue;
    EnvMass after;
    for (const auto& [env, p] : mass) {
      Env bound = env;
      for (int r = 0; r < static_cast<int>(records); ++r) {
        bound[item.index] = {static_cast<int>(item.feature), r};
        after[bound] += p / records;
      }
    }
    mass = std::move(after);
  }
}

void Grammar::analyse_rule(const Rule& rule, EnvMass& mass) {
  EnvMass after;
  for (const Alternative& a : rule.alternatives) {
    const double p = static_cast<double>(a.weight) / static_cast<double>(rule.total);
    EnvMass part = mass;
    for (auto& [env, q] : part) {
      q *= p;
      entropy_ -= q * std::log(p);
    }
    analyse(a.items, part);
    for (const auto& [env, q] : part) after[env] += q;
  }
  mass = std::move(after);
}

}  // namespace hlat
