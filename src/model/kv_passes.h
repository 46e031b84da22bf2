// Passes over tokens of many texts at once, without padding, whose keys and values stay in a cache: scoring and generation. One pass may
// begin texts, go on with others by one token, and read a beginning that several texts share once for all of them. The caller decides which
// slots of the cache hold what; a pass is the same on all ranks of a replica, as are its answers.
//
// On a device with recordings and one rank, passes of a shape that has come before are replayed as one launch.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "model/executor.h"

namespace hlat {

inline constexpr std::string_view kKeysAndValues = "keys and values";  // ends the label of each layer's cache

// What is reserved, once: part of the plan.
struct KvLimits {
  int64_t slots = 0;       // tokens whose keys and values the cache holds
  int64_t tokens = 0;      // of a pass; at most what the executor's micro-batch has
  int64_t segments = 0;    // of a pass
  int64_t asked = 0;       // of a pass
  int64_t length = 0;      // of a text
  int64_t logit_rows = 0;  // asked rows of a pass whose logits the host gets; 0: none does
};

// As the config has it: passes of a micro-batch's tokens, texts of train.seq_len.
KvLimits kv_limits(const Config& config);

struct TokenPass {
  std::vector<int32_t> ids, positions, slots;  // of its tokens
  std::vector<KvSegment> segments;             // each token is in one
  std::vector<int32_t> asked;                  // rows of `ids`: what follows this token? The same row may be asked for several times

  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  // Appends tokens of one text: `count` of them from position `begin` on; key_runs: where the text's keys lie, {slot, end position} each,
  // its own included. Returns the row of the first.
  struct Run {
    int32_t slot = 0, end = 0;
  };
  int32_t add(std::span<const int32_t> tokens, int64_t begin, std::span<const Run> runs);
};

// Of one asked row: log p(target) and whether no token is likelier.
struct TargetScore {
  double logprob = 0;
  bool greedy = false;
};

struct LikeliestToken {
  int32_t id = 0;
  float logit = 0;
};

class KvPasses {
 public:
  // Reserves the cache and what passes are described by on the device. The executor must outlive this.
  KvPasses(Executor& executor, const KvLimits& limits);
  KvPasses(const KvPasses&) = delete;
  KvPasses& operator=(const KvPasses&) = delete;

  // Collective over the replica; all of its ranks get the answers. Targets: one for each asked row.
  std::vector<TargetScore> score(const TokenPass& pass, std::span<const int32_t> targets);
  std::vector<LikeliestToken> likeliest(const TokenPass& pass);
  std::vector<float> logits(const TokenPass& pass);  // (asked, V)
  void fill(const TokenPass& pass);                  // keys and values alone
  // The largest passes of each kind, on any tokens: a dry run finds the plan with it, a real one that the plan holds.
  void rehearse();
  void rehearse_scoring();  // one of texts of full length, all tokens scored: what scoring costs

  const KvLimits& limits() const { return limits_; }
  Executor& executor() const { return executor_; }

 private:
  enum class Answer : uint8_t { none, scores, likeliest, logits };
  struct Shape {  // of a pass as it runs on the device, rounded up
    int64_t tokens = 0, segments = 0, asked = 0, max_queries = 0, max_keys = 0;
    Answer answer = Answer::none;
    auto operator<=>(const Shape&) const = default;
  };
  struct Words {
    Tensor ids, positions, slots, asked, targets, segments;
  };
  struct Replay {
    int64_t met = 0;
    std::unique_ptr<Recording> recording;
  };
  Shape shape_of(const TokenPass& pass, Answer answer) const;
  Words words(const Shape& s) const;
  void place(const TokenPass& pass, std::span<const int32_t> targets, const Shape& s);
  void compute(const Shape& s);
  void run(const TokenPass& pass, std::span<const int32_t> targets, const Shape& s);
  std::vector<float> from_last_stage(std::vector<float> values) const;
  TokenPass dense_pass() const;
  void rehearse_decoding();

  Executor& executor_;
  KvLimits limits_;
  KvPass kv_;
  Tensor words_;              // what describes a pass, i32
  Tensor stats_;              // (asked, 3), here and below on the last stage
  Tensor best_, best_logit_;  // (asked)
  Tensor logits_;             // (logit_rows, V / tp)
  std::map<Shape, Replay> replays_;
  bool records_ = true;  // until the device does not
};

}  // namespace hlat
