#include "eval/generator.h"

#include <algorithm>
#include <list>

#include "eval/cached_prompts.h"
#include "eval/sampler.h"

namespace hlat {

namespace {

// A text under way.
struct Row {
  size_t request = 0;
  PlacedText place;
  std::vector<int32_t> tokens;  // the prompt and what came after it
  int64_t read = 0;             // the first position of its own whose keys are not computed
  Sampler sampler;
  bool likeliest = false;  // of what follows only the likeliest token is wanted
  bool ended = false;

  int64_t unread() const { return static_cast<int64_t>(tokens.size()) - read; }
};

class Generator {
 public:
  Generator(KvPasses& passes, std::span<const GenerateRequest> requests, const LanguageModel::KeepOn& keep, const LanguageModel::Told& told)
      : passes_(passes), limits_(passes.limits()), requests_(requests), keep_(keep), told_(told), results_(requests.size()) {
    for (size_t r = 0; r < requests.size(); ++r) check(r);
  }

  std::vector<Generation> run() {
    std::vector<PrefixTree::Text> prompts;
    std::vector<int64_t> lengths;
    for (const GenerateRequest& r : requests_) {
      prompts.emplace_back(r.prompt);
      lengths.push_back(kept_tokens(r));
    }
    CachedPrompts cache(prompts, std::move(lengths), limits_.slots);
    for (size_t next = 0; next < requests_.size() || !rows_.empty();) {
      admit(cache, next);
      for (const std::vector<Row*>& group : groups()) advance(group);
      std::erase_if(rows_, [&](const Row& row) {
        if (row.ended) cache.give_back(row.place);
        return row.ended;
      });
      if (told_) told_(answered_);
    }
    return std::move(results_);
  }

 private:
  // The last new token is not read.
  static int64_t kept_tokens(const GenerateRequest& r) {
    return static_cast<int64_t>(r.prompt.size()) + std::max<int64_t>(r.max_new - 1, 0);
  }

  void check(size_t index) const {
    const GenerateRequest& r = requests_[index];
    const auto prompt = static_cast<int64_t>(r.prompt.size());
    HLAT_CHECK(prompt > 0 && r.max_new >= 0 && prompt + r.max_new <= limits_.length, "a prompt of {} and {} new tokens, reserved are {}",
               prompt, r.max_new, limits_.length);
    HLAT_CHECK(likeliest_is_enough(r) || limits_.logit_rows > 0, "no logits are reserved");
    check_sampling(r.sampling, fmt::format("request {}: ", index + 1));
  }

  static bool likeliest_is_enough(const GenerateRequest& r) { return Sampler::likeliest_is_enough(r.sampling) && !r.logprobs; }

  // Requests that wait become rows, while there are slots for them.
  void admit(CachedPrompts& cache, size_t& next) {
    const auto most = static_cast<size_t>(std::min({limits_.tokens, limits_.segments, limits_.asked}));
    for (; next < requests_.size() && rows_.size() < most; ++next) {
      const size_t index = cache.order()[next];
      const GenerateRequest& r = requests_[index];
      std::optional<PlacedText> place = cache.place(index);
      if (!place) return;
      const int64_t begin = place->own_begin;
      rows_.push_back({.request = index,
                       .place = std::move(*place),
                       .tokens = r.prompt,
                       .read = begin,
                       .sampler = Sampler(r.sampling, r.prompt),
                       .likeliest = likeliest_is_enough(r),
                       .ended = r.max_new == 0});
      answered_ += r.max_new == 0 ? 1 : 0;
    }
  }

  // Rows that go on in one pass: the host gets the logits of so many at a time.
  std::vector<std::vector<Row*>> groups() {
    std::vector<Row*> likeliest;
    std::vector<std::vector<Row*>> all;
    for (Row& row : rows_) {
      if (row.ended) continue;
      if (row.likeliest) {
        likeliest.push_back(&row);
        continue;
      }
      if (all.empty() || static_cast<int64_t>(all.back().size()) == limits_.logit_rows) all.emplace_back();
      all.back().push_back(&row);
    }
    if (!likeliest.empty()) all.push_back(std::move(likeliest));
    return all;
  }

  // Adds tokens [read, end) of a text to the pass, as many as it has room for. Returns whether all are read now.
  bool add(TokenPass& pass, const std::vector<int32_t>& tokens, int64_t& read, int64_t end, std::span<const TokenPass::Run> runs) const {
    const bool full = static_cast<int64_t>(pass.segments.size()) == limits_.segments;
    const int64_t count = full ? 0 : std::min(end - read, limits_.tokens - pass.tokens());
    if (count > 0) pass.add(std::span(tokens).subspan(static_cast<size_t>(read), static_cast<size_t>(count)), read, runs);
    read += count;
    return read == end;
  }

  // The row's next tokens, after the beginnings it shares. Asked is what follows when its last token is among them.
  void add(TokenPass& pass, Row& row, std::vector<Row*>& asked) const {
    const std::span<const TokenPass::Run> runs = row.place.runs;
    for (size_t s = 0; s < row.place.shared.size(); ++s) {
      SharedStretch& shared = *row.place.shared[s];
      if (shared.read < shared.end && !add(pass, row.tokens, shared.read, shared.end, runs.first(s + 1))) return;
    }
    if (!add(pass, row.tokens, row.read, static_cast<int64_t>(row.tokens.size()), runs)) return;
    pass.asked.push_back(static_cast<int32_t>(pass.tokens()) - 1);
    asked.push_back(&row);
  }

  // One pass for these rows: first those that are generating, whose turn must not wait for prompts.
  void advance(const std::vector<Row*>& group) {
    TokenPass pass;
    std::vector<Row*> asked, prompts;
    for (Row* row : group)
      if (row->tokens.size() > requests_[row->request].prompt.size())
        add(pass, *row, asked);
      else
        prompts.push_back(row);
    for (Row* row : prompts) add(pass, *row, asked);
    if (asked.empty()) return passes_.fill(pass);
    if (group.front()->likeliest) {
      const std::vector<LikeliestToken> found = passes_.likeliest(pass);
      for (size_t i = 0; i < asked.size(); ++i) {
        check_largest(found[i].logit);
        take(*asked[i], {.id = found[i].id});
      }
      return;
    }
    const std::vector<float> logits = passes_.logits(pass);
    const size_t vocab = logits.size() / asked.size();
    for (size_t i = 0; i < asked.size(); ++i) {
      const std::span<const float> own = std::span(logits).subspan(i * vocab, vocab);
      NewToken token{.id = asked[i]->sampler.next(own)};
      if (requests_[asked[i]->request].logprobs) token.logprob = static_cast<float>(log_probability(own, token.id));
      take(*asked[i], token);
    }
  }

  void take(Row& row, const NewToken& token) {
    const GenerateRequest& request = requests_[row.request];
    Generation& result = results_[row.request];
    if (token.id == request.end) {
      end(row, EndReason::end_token);
      return;
    }
    result.tokens.push_back(token);
    row.tokens.push_back(token.id);
    if (keep_ && !keep_(row.request, token))
      end(row, EndReason::stopped);
    else if (static_cast<int64_t>(result.tokens.size()) == request.max_new)
      end(row, EndReason::length);
  }

  void end(Row& row, EndReason reason) {
    row.ended = true;
    results_[row.request].reason = reason;
    ++answered_;
  }

  KvPasses& passes_;
  const KvLimits limits_;
  std::span<const GenerateRequest> requests_;
  const LanguageModel::KeepOn& keep_;
  const LanguageModel::Told& told_;
  std::vector<Generation> results_;
  std::list<Row> rows_;  // in the order in which they began
  size_t answered_ = 0;
};

}  // namespace

std::vector<Generation> generate_all(KvPasses& passes, std::span<const GenerateRequest> requests, const LanguageModel::KeepOn& keep,
                                     const LanguageModel::Told& told) {
  return Generator(passes, requests, keep, told).run();
}

}  // namespace hlat
