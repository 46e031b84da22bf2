#include "config/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "config/alarm_rules.h"
#include "config/fault_spec.h"
#include "config/nearest.h"
#include "config/precision_rules.h"
#include "config/run_length.h"
#include "config/value.h"

namespace hlat {
namespace {

// Collects what is wrong with a Config.
class Checker {
 public:
  Checker(const Config& config, std::set<std::string> skip) : config_(config), fields_(all_fields(config_)), skip_(std::move(skip)) {}

  void limits() {
    for (const Field& f : fields_) {
      if (skip_.contains(f.key()) || within_limits(f)) continue;
      found_.push_back({{f.key()}, fmt::format("must be {}", expectation(f))});
      skip_.insert(f.key());
    }
  }

  // `broken` returns what is wrong, or nothing. It runs only when all its keys hold values within their limits.
  template <class Broken>
  void rule(std::vector<std::string> keys, const Broken& broken) {
    for (const std::string& key : keys) {
      const bool known = std::any_of(fields_.begin(), fields_.end(), [&](const Field& f) { return f.key() == key; });
      HLAT_CHECK(known, "a rule names {}, which is no key", key);
      if (skip_.contains(key)) return;
    }
    std::string message = broken();
    if (!message.empty()) found_.push_back({std::move(keys), std::move(message)});
  }

  std::vector<Violation> take() { return std::move(found_); }

 private:
  Config config_;
  std::vector<Field> fields_;
  std::set<std::string> skip_;
  std::vector<Violation> found_;
};

constexpr double kExact = kMaxTokens;  // 2^62: sums of such counts still fit in 64 bits

void model_rules(Checker& check, const ModelConfig& m) {
  check.rule({"model.heads", "model.hidden"}, [&]() -> std::string {
    if (m.hidden % m.heads != 0) return fmt::format("must divide model.hidden ({})", m.hidden);
    if (m.head_dim() % 2 == 0) return {};
    return fmt::format("must leave an even head size for RoPE, not model.hidden / model.heads = {}", m.head_dim());
  });
  check.rule({"model.kv_heads", "model.heads"},
             [&]() -> std::string { return m.heads % m.kv() == 0 ? "" : fmt::format("must divide model.heads ({})", m.heads); });
  check.rule({"model.rope_factor", "model.rope_scaling"}, [&]() -> std::string {
    if (m.rope_factor == 1 || m.rope_scaling != "none") return {};
    return "stretches nothing while model.rope_scaling is none; give model.rope_scaling=linear or llama3";
  });
  check.rule({"model.rope_high_freq_factor", "model.rope_low_freq_factor", "model.rope_scaling"}, [&]() -> std::string {
    if (m.rope_scaling != "llama3" || m.rope_high_freq_factor > m.rope_low_freq_factor) return {};
    return fmt::format("must exceed model.rope_low_freq_factor ({})", m.rope_low_freq_factor);
  });
}

void schedule_rules(Checker& check, const OptimConfig& o, const TrainConfig& t) {
  const bool follows = o.schedule_steps == 0;
  const int64_t end = follows ? t.steps : o.schedule_steps;
  const std::string end_key = follows ? "train.steps" : "optim.schedule_steps";
  const std::string source = follows && length_key(t) != "train.steps" ? fmt::format(", from {}", length_key(t)) : "";
  check.rule({"optim.warmup", "optim.schedule_steps", "train.steps"}, [&]() -> std::string {
    if (o.warmup <= end) return {};
    const std::string_view advice = follows ? "; give optim.schedule_steps to stop early in a longer schedule" : "";
    return fmt::format("must not exceed the schedule's end, {} ({}{}){}", end_key, end, source, advice);
  });
  check.rule({"optim.decay_share", "optim.warmup", "optim.schedule_steps", "train.steps", "optim.schedule"}, [&]() -> std::string {
    const double decay = o.decay_share * static_cast<double>(end);
    const bool fits = static_cast<double>(o.warmup) + decay <= static_cast<double>(end);
    // A warm-up that alone is too long has its own message.
    if (o.schedule != ScheduleKind::warmup_stable_decay || fits || o.warmup > end) return {};
    return fmt::format("must leave room for optim.warmup ({}) in {} ({}{})", o.warmup, end_key, end, source);
  });
}

void batch_rules(Checker& check, const Config& c) {
  const TrainConfig& t = c.train;
  check.rule({"train.tokens", "train.epochs"},
             [&]() -> std::string { return t.tokens > 0 && t.epochs > 0 ? "the length of the run is also given by train.epochs" : ""; });
  check.rule({"train.micro_batch", "train.global_batch"}, [&]() -> std::string {
    return t.global_batch % t.micro_batch == 0 ? "" : fmt::format("must divide train.global_batch ({})", t.global_batch);
  });
  check.rule({"train.micro_batch", "train.seq_len"}, [&]() -> std::string {
    if (t.micro_batch * t.seq_len <= static_cast<int64_t>(kMaxCount)) return {};
    return fmt::format("times train.seq_len ({}) must stay below 2^31 tokens", t.seq_len);
  });
  check.rule({"train.steps", "train.global_batch", "train.seq_len"}, [&]() -> std::string {
    const double tokens = static_cast<double>(t.steps) * static_cast<double>(t.global_batch) * static_cast<double>(t.seq_len);
    return tokens <= kExact ? "" : "times train.global_batch and train.seq_len must stay below 2^62 tokens";
  });
}

// "2 or 4", or the one that is not 0.
std::string either(int64_t below, int64_t above) {
  if (below == 0 || above == 0) return fmt::format("{}", std::max(below, above));
  return fmt::format("{} or {}", below, above);
}

// The next numbers of replicas and batch sizes that fit, below and above.
std::string batch_advice(int64_t dp, const TrainConfig& t) {
  const int64_t micro_batches = t.global_batch / t.micro_batch, unit = dp * t.micro_batch;
  int64_t fewer = std::min(dp, micro_batches), more = dp;
  while (micro_batches % fewer != 0) --fewer;
  while (more < micro_batches && micro_batches % more != 0) ++more;
  const int64_t below = t.global_batch / unit * unit;
  return fmt::format("parallel.dp {}, or train.global_batch {}, would fit", either(fewer, more <= micro_batches ? more : 0),
                     either(below, below + unit));
}

void rank_rules(Checker& check, const Config& c) {
  const ParallelConfig& p = c.parallel;
  const auto at_most = [&](const std::string& key, int64_t value, std::string_view why) {
    check.rule({"parallel.tp", key}, [&]() -> std::string {
      return p.tp <= value ? "" : fmt::format("must not exceed {} ({}): every rank needs {}", key, value, why);
    });
  };
  at_most("model.heads", c.model.heads, "a head");
  at_most("model.ffn", c.model.ffn, "a column");
  if (c.model.vocab > 0) at_most("model.vocab", c.model.vocab, "a token of the vocabulary");
  check.rule({"parallel.tp", "parallel.pp", "parallel.dp"}, [&]() -> std::string {
    if (p.tp * p.pp * std::max<int64_t>(p.dp, 1) <= static_cast<int64_t>(kMaxCount)) return {};
    const std::string replicas = p.dp > 0 ? fmt::format(" x parallel.dp ({})", p.dp) : "";
    return fmt::format("x parallel.pp ({}){} must stay below 2^31 ranks", p.pp, replicas);
  });
  check.rule({"parallel.sequence", "parallel.tp", "train.micro_batch", "train.seq_len"}, [&]() -> std::string {
    const int64_t tokens = c.train.micro_batch * c.train.seq_len;
    if (!p.sequence || tokens >= p.tp) return {};
    return fmt::format("needs a token for each of parallel.tp ({}) ranks, but train.micro_batch ({}) x train.seq_len ({}) is {}", p.tp,
                       c.train.micro_batch, c.train.seq_len, tokens);
  });
  check.rule({"parallel.dp", "train.global_batch", "train.micro_batch"}, [&]() -> std::string {
    const TrainConfig& t = c.train;
    // A micro-batch that alone does not divide the batch has its own message.
    if (p.dp == 0 || t.global_batch % t.micro_batch != 0 || t.global_batch % (p.dp * t.micro_batch) == 0) return {};
    return fmt::format("x train.micro_batch ({}) is {} sequences and must divide train.global_batch ({}); {}", t.micro_batch,
                       p.dp * t.micro_batch, t.global_batch, batch_advice(p.dp, t));
  });
}

void pipeline_rules(Checker& check, const ParallelConfig& p, int64_t layers) {
  const auto count = static_cast<int64_t>(p.cuts.size());
  check.rule({"parallel.chunks", "parallel.pp"}, [&]() -> std::string {
    return p.chunks == 1 || p.pp > 1 ? "" : "needs parallel.pp above 1: only pipeline stages hold several pieces";
  });
  check.rule({"parallel.pp", "parallel.chunks", "model.layers"}, [&]() -> std::string {
    if (p.pieces() <= layers || (p.pp == 1 && p.chunks > 1)) return {};
    if (p.chunks == 1) return fmt::format("must not exceed model.layers ({})", layers);
    return fmt::format("x parallel.chunks ({}) is {} pieces, more than model.layers ({})", p.chunks, p.pieces(), layers);
  });
  check.rule({"parallel.cuts", "parallel.pp", "parallel.chunks"}, [&]() -> std::string {
    if (count == 0 || count == p.pieces() - 1) return {};
    if (p.pieces() == 1) return "must be [] while parallel.pp is 1: there is nothing to cut";
    return fmt::format("must hold {} integer{}, one less than the pieces, parallel.pp ({}) x parallel.chunks ({}); or [] for even pieces",
                       p.pieces() - 1, p.pieces() == 2 ? "" : "s", p.pp, p.chunks);
  });
  check.rule({"parallel.cuts"}, [&]() -> std::string {
    const auto place = std::adjacent_find(p.cuts.begin(), p.cuts.end(), std::greater_equal<>());
    return place == p.cuts.end() ? "" : fmt::format("must increase, but {} follows {}", *(place + 1), *place);
  });
  check.rule({"parallel.cuts", "model.layers"}, [&]() -> std::string {
    const auto place = std::find_if(p.cuts.begin(), p.cuts.end(), [&](int64_t cut) { return cut >= layers; });
    return place == p.cuts.end() ? "" : fmt::format("must stay below model.layers ({}), but holds {}", layers, *place);
  });
}

// Far beyond any machine, but sizes are added up before anything can say that they do not fit.
void size_rules(Checker& check, const Config& c) {
  const auto d = [](int64_t v) { return static_cast<double>(v); };
  const double L = d(c.model.layers), D = d(c.model.hidden), F = d(c.model.ffn), V = d(c.model.vocab);
  const double N = d(c.train.micro_batch) * d(c.train.seq_len);
  check.rule({"model.layers", "model.hidden", "model.ffn", "model.vocab"}, [&]() -> std::string {
    const double state = 20 * (2 * V * D + L * (4 * D * D + 3 * D * F));  // weight, gradient, master, two moments
    return state <= kExact ? "" : "with model.hidden, model.ffn and model.vocab needs more than 2^62 bytes of weights and optimizer state";
  });
  check.rule({"train.micro_batch", "train.seq_len", "model.layers", "model.hidden", "model.ffn", "model.vocab"}, [&]() -> std::string {
    const double activations = 4 * N * (L * (20 * D + 8 * F) + 4 * V);
    return activations <= kExact ? "" : "with train.seq_len and the model's shape needs more than 2^62 bytes of activations";
  });
}

std::string key(std::string_view list, size_t item, std::string_view leaf) { return fmt::format("data.{}[{}].{}", list, item, leaf); }

double sum_of(const Weights& weights) {
  return std::accumulate(weights.begin(), weights.end(), 0.0, [](double sum, const auto& item) { return sum + item.second; });
}

void source_rules(Checker& check, const Config& c) {
  const DataConfig& d = c.data;
  for (size_t i = 0; i < d.sources.size(); ++i)
    check.rule({key("sources", i, "name"), key("sources", i, "path")}, [&]() -> std::string {
      for (size_t j = 0; j < i; ++j)
        if (d.sources[j].id() == d.sources[i].id())
          return fmt::format("data.sources[{}] is called {} too; give each its own name", j, d.sources[i].id());
      return {};
    });
  for (size_t i = 0; i < d.sources.size(); ++i)
    check.rule({key("sources", i, "separator")}, [&]() -> std::string {
      constexpr std::array<std::string_view, 2> kWords = {"line", "blank_line"};
      const std::string& given = d.sources[i].separator;
      const bool word = std::all_of(given.begin(), given.end(), [](char x) { return (x >= 'a' && x <= 'z') || x == '_' || x == '-'; });
      const std::string_view best = word ? nearest(given, kWords) : "";
      return best.empty() || best == given ? "" : fmt::format("is neither line nor blank_line; did you mean {}?", best);
    });
  if (d.sources.empty()) return;
  check.rule({"data.tokenizer", "data.sources"},
             [&]() -> std::string { return d.tokenizer.empty() ? "data.sources needs a tokenizer: give its file" : ""; });
  std::vector<std::string> weights;
  double sum = 0;
  for (size_t i = 0; i < d.sources.size(); ++i) weights.push_back(key("sources", i, "weight")), sum += d.sources[i].weight;
  const bool used = d.stages.empty() || d.stages.front().first_step(c.train.global_batch * c.train.seq_len) > 1;
  check.rule(weights, [&]() -> std::string { return sum > 0 || !used ? "" : "all sources have weight 0, so there is nothing to read"; });
}

void stage_rules(Checker& check, const Config& c) {
  const DataConfig& d = c.data;
  const int64_t tokens = c.train.global_batch * c.train.seq_len;
  std::vector<std::string_view> names;
  for (const SourceConfig& s : d.sources) names.push_back(s.id());
  for (size_t i = 0; i < d.stages.size(); ++i) {
    const DataStage& stage = d.stages[i];
    check.rule({key("stages", i, "from_step"), key("stages", i, "from_tokens")}, [&]() -> std::string {
      return stage.from_step > 0 && stage.from_tokens > 0 ? "a stage begins by from_step or by from_tokens, not by both" : "";
    });
    check.rule({key("stages", i, "weights")}, [&]() -> std::string {
      for (const auto& [name, weight] : stage.weights) {
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        return fmt::format("no source is called {}; {}", name, alternatives(name, names));
      }
      return sum_of(stage.weights) > 0 ? "" : "must give at least one source a weight above 0";
    });
    if (i == 0) continue;
    const std::string_view own = stage.from_tokens > 0 ? "from_tokens" : "from_step";
    check.rule({key("stages", i, own), key("stages", i - 1, "from_step"), key("stages", i - 1, "from_tokens"), "train.global_batch",
                "train.seq_len"},
               [&]() -> std::string {
                 const int64_t before = d.stages[i - 1].first_step(tokens), here = stage.first_step(tokens);
                 if (here > before) return {};
                 return fmt::format("the stage begins with step {}, but data.stages[{}] before it with step {}; stages must be in order",
                                    here, i - 1, before);
               });
  }
}

void data_rules(Checker& check, const Config& c) {
  const DataConfig& d = c.data;
  source_rules(check, c);
  stage_rules(check, c);
  check.rule({"data.validate_every", "data.validation"}, [&]() -> std::string {
    const bool files = std::any_of(d.sources.begin(), d.sources.end(), [](const SourceConfig& s) { return !s.validation.empty(); });
    return d.validate_every == 0 || d.validation > 0 || files ? "" : "needs data.validation above 0: no document is held out";
  });
  check.rule({"data.validate_rows", "train.micro_batch", "parallel.dp"}, [&]() -> std::string {
    const int64_t unit = c.train.micro_batch * std::max<int64_t>(1, c.parallel.dp);
    if (d.validate_rows % unit == 0) return {};
    return fmt::format("must be a multiple of {}: train.micro_batch ({}){}", unit, c.train.micro_batch,
                       c.parallel.dp > 1 ? fmt::format(" x parallel.dp ({})", c.parallel.dp) : "");
  });
}

void checkpoint_rules(Checker& check, const CheckpointConfig& c) {
  check.rule({"checkpoint.init_from", "checkpoint.resume_from"}, [&]() -> std::string {
    if (c.init_from.empty() || c.resume_from.empty()) return {};
    return "a run starts with the weights of one checkpoint, or goes on from one: not together with checkpoint.resume_from";
  });
}

void eval_rules(Checker& check, const Config& c) {
  for (const char* key : {"eval.every", "eval.every_tokens", "eval.at_end"})
    check.rule({key, "eval.tasks", "eval.data"}, [&]() -> std::string {
      const bool asked = std::string_view(key) == "eval.every"          ? c.eval.every > 0
                         : std::string_view(key) == "eval.every_tokens" ? c.eval.every_tokens > 0
                                                                        : c.eval.at_end;
      if (!asked) return {};
      if (c.eval.tasks.empty()) return "needs eval.tasks: what is to be evaluated; hlat eval --list names tasks";
      return c.eval.data.empty() ? "needs eval.data: the folder of evaluation data" : "";
    });
  check.rule({"eval.cache_tokens", "train.seq_len"}, [&]() -> std::string {
    if (c.eval.cache_tokens == 0 || c.eval.cache_tokens >= c.train.seq_len) return {};
    return fmt::format("must hold at least one sequence, train.seq_len ({})", c.train.seq_len);
  });
}

void alarm_rules(Checker& check, const LossConfig& loss) {
  std::vector<std::string> wrong;
  parse_alarms(loss.alarms, wrong);
  for (const std::string& text : wrong) check.rule({"loss.alarms"}, [&] { return text; });
}

void fault_rules(Checker& check, const Config& c) {
  std::vector<std::string> wrong, wrong_kinds;
  const std::vector<FaultSpec> faults = parse_faults(c.fault.inject, wrong);
  parse_fault_kinds(c.fault.kinds, wrong_kinds);
  for (const std::string& text : wrong) check.rule({"fault.inject"}, [&] { return text; });
  for (const std::string& text : wrong_kinds) check.rule({"fault.kinds"}, [&] { return text; });
  check.rule({"fault.inject", "checkpoint.keep"}, [&]() -> std::string {
    const bool corrupts = std::any_of(faults.begin(), faults.end(), [](const FaultSpec& f) { return f.kind == FaultKind::corrupt; });
    return !corrupts || c.checkpoint.keep > 1 ? "" : "corrupt: there must be an older checkpoint to go back to; set checkpoint.keep=2";
  });
}

}  // namespace

std::vector<Violation> validate(const Config& given, std::set<std::string> skip) {
  if (given.train.epochs > 0 && !steps_known(given.train)) skip.insert("train.steps");  // it follows when the data is known
  Checker check(given, std::move(skip));
  check.limits();
  Config config = given;
  config.train.micro_batch = std::max<int64_t>(1, given.train.micro_batch);  // auto is at least 1, and chosen to keep the rules
  model_rules(check, config.model);
  schedule_rules(check, config.optim, config.train);
  batch_rules(check, config);
  rank_rules(check, config);
  pipeline_rules(check, config.parallel, config.model.layers);
  for (const Violation& v : precision_violations(given)) check.rule(v.keys, [&] { return v.message; });
  size_rules(check, config);
  data_rules(check, config);
  checkpoint_rules(check, config.checkpoint);
  eval_rules(check, config);
  alarm_rules(check, config.loss);
  fault_rules(check, config);
  return check.take();
}

}  // namespace hlat
