#include "eval/scorer.h"

#include <algorithm>

#include "eval/prefix_tree.h"

namespace hlat {

namespace {

struct AskedToken {
  int64_t position = 0;  // of the token before it
  int32_t target = 0;
  size_t request = 0, index = 0;  // which token of whose continuation
};

class Scorer {
 public:
  Scorer(KvPasses& passes, std::span<const ScoreRequest> requests, const LanguageModel::Told& told)
      : passes_(passes), requests_(requests), told_(told), scores_(requests.size()), left_(requests.size()) {
    for (const ScoreRequest& r : requests) {
      HLAT_CHECK(!r.context.empty() && !r.continuation.empty(), "a context of {} and a continuation of {} tokens", r.context.size(),
                 r.continuation.size());
      std::vector<int32_t>& text = texts_.emplace_back(r.context);
      text.insert(text.end(), r.continuation.begin(), r.continuation.end() - 1);
      HLAT_CHECK(static_cast<int64_t>(text.size()) <= passes.limits().length, "a text of {} tokens, reserved are {}", text.size(),
                 passes.limits().length);
    }
  }

  std::vector<Score> run() {
    const std::vector<PrefixTree::Text> texts(texts_.begin(), texts_.end());
    const PrefixTree tree(texts, kKeyRuns);
    ask(tree);
    slots_.resize(tree.stretches().size());
    measure_depth(tree);
    for (size_t s = 0; s < tree.stretches().size(); ++s) compute(tree, s);
    flush();
    return std::move(scores_);
  }

 private:
  // Each asked token belongs to the stretch that has the token before it.
  void ask(const PrefixTree& tree) {
    asked_.resize(tree.stretches().size());
    for (size_t r = 0; r < requests_.size(); ++r) {
      const ScoreRequest& request = requests_[r];
      scores_[r].logprobs.resize(request.continuation.size());
      left_[r] = request.continuation.size();
      int32_t stretch = tree.leaf(r);
      for (size_t i = request.continuation.size(); i-- > 0;) {
        const auto position = static_cast<int64_t>(request.context.size() + i) - 1;
        while (tree.stretches()[static_cast<size_t>(stretch)].begin > position)
          stretch = tree.stretches()[static_cast<size_t>(stretch)].parent;
        asked_[static_cast<size_t>(stretch)].push_back({position, request.continuation[i], r, i});
      }
    }
    for (std::vector<AskedToken>& list : asked_)
      std::stable_sort(list.begin(), list.end(), [](const AskedToken& a, const AskedToken& b) { return a.position < b.position; });
  }

  // Where the keys of a stretch's texts lie, down to its own.
  std::vector<TokenPass::Run> runs_of(const PrefixTree& tree, size_t stretch) const {
    std::vector<TokenPass::Run> runs;
    for (auto s = static_cast<int32_t>(stretch); s >= 0; s = tree.stretches()[static_cast<size_t>(s)].parent)
      runs.push_back({slots_[static_cast<size_t>(s)], static_cast<int32_t>(tree.stretches()[static_cast<size_t>(s)].end)});
    std::reverse(runs.begin(), runs.end());
    return runs;
  }

  void measure_depth(const PrefixTree& tree) {
    const std::vector<Stretch>& all = tree.stretches();
    deepest_.resize(all.size());
    for (size_t s = all.size(); s-- > 0;) {
      deepest_[s] = std::max(deepest_[s], all[s].end);
      if (all[s].parent >= 0)
        deepest_[static_cast<size_t>(all[s].parent)] = std::max(deepest_[static_cast<size_t>(all[s].parent)], deepest_[s]);
    }
  }

  // With room above it for the longest of its texts: so each of them fits when its turn comes.
  void place(const PrefixTree& tree, size_t stretch) {
    const Stretch& s = tree.stretches()[stretch];
    if (top_ + (deepest_[stretch] - s.begin) > passes_.limits().slots) {
      flush();
      top_ = 0;
      if (s.parent >= 0) {
        const Stretch& parent = tree.stretches()[static_cast<size_t>(s.parent)];
        top_ = slots_[static_cast<size_t>(s.parent)] + (parent.end - parent.begin);
      }
    }
    slots_[stretch] = static_cast<int32_t>(top_);
    top_ += s.end - s.begin;
  }

  void compute(const PrefixTree& tree, size_t stretch) {
    place(tree, stretch);
    const Stretch& s = tree.stretches()[stretch];
    const std::vector<TokenPass::Run> runs = runs_of(tree, stretch);
    const std::vector<AskedToken>& asked = asked_[stretch];
    const KvLimits& limits = passes_.limits();
    size_t next = 0;
    for (int64_t begin = s.begin; begin < s.end;) {
      if (pass_.tokens() == limits.tokens || static_cast<int64_t>(pass_.segments.size()) == limits.segments ||
          static_cast<int64_t>(asked_now_.size()) == limits.asked)
        flush();
      int64_t end = std::min(s.end, begin + limits.tokens - pass_.tokens());
      const size_t room = std::min(asked.size(), next + static_cast<size_t>(limits.asked) - asked_now_.size());
      // A token with more questions than a pass has room for is computed in the next one again.
      const bool again = room < asked.size() && asked[room].position < end;
      if (again) end = asked[room].position + 1;
      const int32_t row =
          pass_.add(std::span(texts_[s.text]).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), begin, runs);
      for (; next < room && asked[next].position < end; ++next) {
        pass_.asked.push_back(row + static_cast<int32_t>(asked[next].position - begin));
        asked_now_.push_back(asked[next]);
      }
      begin = again ? end - 1 : end;
    }
  }

  void flush() {
    if (pass_.tokens() == 0) return;
    if (asked_now_.empty()) {
      passes_.fill(pass_);
    } else {
      std::vector<int32_t> targets;
      for (const AskedToken& a : asked_now_) targets.push_back(a.target);
      answer(passes_.score(pass_, targets));
    }
    pass_ = {};
    asked_now_.clear();
    if (told_) told_(answered_);
  }

  void answer(const std::vector<TargetScore>& found) {
    for (size_t i = 0; i < found.size(); ++i) {
      const AskedToken& a = asked_now_[i];
      Score& score = scores_[a.request];
      score.logprobs[a.index] = static_cast<float>(found[i].logprob);
      score.greedy = score.greedy && found[i].greedy;
      score.logprob += found[i].logprob;
      answered_ += --left_[a.request] == 0 ? 1 : 0;
    }
  }

  KvPasses& passes_;
  std::span<const ScoreRequest> requests_;
  const LanguageModel::Told& told_;
  std::vector<std::vector<int32_t>> texts_;  // what is read for each request
  std::vector<Score> scores_;
  std::vector<size_t> left_;  // tokens of each continuation that are still to be answered
  size_t answered_ = 0;
  std::vector<std::vector<AskedToken>> asked_;  // by stretch, in the order of their positions
  std::vector<int32_t> slots_;                  // of the first token of each stretch
  std::vector<int64_t> deepest_;                // where the longest text of each stretch ends
  int64_t top_ = 0;                             // slots in use
  TokenPass pass_;                              // being filled
  std::vector<AskedToken> asked_now_;           // in it
};

}  // namespace

std::vector<Score> score_all(KvPasses& passes, std::span<const ScoreRequest> requests, const LanguageModel::Told& told) {
  return Scorer(passes, requests, told).run();
}

}  // namespace hlat
