// A saved config read back, also one of another version, and the rules of a continued run: what may change, what may not, and what an error
// tells to do.
#include "config/continuation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/fields.h"
#include "config/load.h"
#include "config/print.h"
#include "config/saved.h"
#include "config/value.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;

Config saved_run() {
  Config c =
      load_config("", {"model.preset=nano", "train.steps=100", "train.global_batch=16", "optim.warmup=10", "train.micro_batch=2"}).config;
  c.parallel.dp = 1;
  return c;
}

Config with(Config c, const std::string& key, const std::string& value) {
  for (const Field& f : all_fields(c))
    if (f.key() == key) {
      EXPECT_TRUE(parse_value(f, value)) << key << " = " << value;
      return c;
    }
  ADD_FAILURE() << key;
  return c;
}

std::string refusal(const Config& saved, const Config& now, bool forked = false) {
  try {
    check_continuation(saved, now, forked);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

bool has(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

TEST(SavedConfig, ReadsBackEveryKeyOfEveryConfig) {
  Config c = saved_run();
  c.parallel.cuts = {1, 3};
  c.train.recompute = {RecomputeKind::full, 3};
  c.train.precision = PrecisionKind::mixed_sr;
  c.optim.schedule = ScheduleKind::warmup_stable_decay;
  c.optim.lr = 0.1 + 0.2;
  c.optim.eps = 1e-12;
  c.run.seed = std::numeric_limits<uint64_t>::max();
  c.data.sources.resize(2);
  c.data.sources[0].name = "a, b: {c}", c.data.sources[0].path = "y";
  c.data.sources[1].path = "x/**/*.jsonl";
  c.data.stages.resize(1);
  c.data.stages[0] = {.from_step = 7, .from_tokens = 0, .weights = {{"a, b: {c}", 0.25}, {"x/**/*.jsonl", 1e-3}}};
  for (const Config& config : {Config{}, c}) {
    const SavedConfig back = config_from_json(Json::parse(to_json(config).dump()));
    EXPECT_EQ(back.config, config);
    EXPECT_TRUE(back.unknown.empty());
  }
}

TEST(SavedConfig, EpochsWhoseStepsAreNotKnownStayUnknown) {
  const Config c = load_config("", {"train.epochs=2"}).config;
  EXPECT_EQ(config_from_json(to_json(c)).config, c);
}

TEST(SavedConfig, KeysOfALaterVersionAreNamedAndMissingOnesAreDefaults) {
  Json j = to_json(saved_run());
  j["model"]["qk_norm"] = true;
  j["mixture_of_experts"]["experts"] = 8;
  j["train"]["precision"] = "fp4";
  j["data"]["sources"] = Json::array({{{"path", "x"}, {"language", "de"}}});
  j["optim"].erase("clip");
  j.erase("device");
  const SavedConfig saved = config_from_json(j);
  for (const char* line :
       {"train.precision = \"fp4\"", "data.sources[0].language = \"de\"", "mixture_of_experts.experts = 8", "model.qk_norm = true"})
    EXPECT_TRUE(has(saved.unknown, line)) << line;
  EXPECT_EQ(saved.unknown.size(), 4u);
  EXPECT_EQ(saved.config.train.global_batch, 16);
  EXPECT_EQ(saved.config.data.sources.at(0).path, "x");
  EXPECT_EQ(saved.config.optim.clip, OptimConfig{}.clip);
  EXPECT_THROW(config_from_json(Json::array()), UsageError);
}

TEST(SavedConfig, ChangesAreNamedOverTheFieldList) {
  const Config a = saved_run();
  EXPECT_TRUE(config_changes(a, a).empty());
  Config b = with(with(a, "parallel.tp", "4"), "data.cache_dir", "/c");
  b.data.sources.resize(2);
  std::vector<std::string> lines;
  for (const KeyChange& change : config_changes(a, b)) lines.push_back(change.str());
  EXPECT_EQ(lines, (std::vector<std::string>{"parallel.tp 1 -> 4", "data.sources [] -> [2 items]", "data.cache_dir \"\" -> /c"}));
}

TEST(Continuation, WhatMayChangeIsToldLineByLine) {
  const Config saved = saved_run();
  EXPECT_TRUE(check_continuation(saved, saved, false).empty());
  Config now = saved;
  now.optim.schedule_steps = 100;
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"train.steps", "200"},
                                                                                   {"parallel.tp", "2"},
                                                                                   {"parallel.zero1", "false"},
                                                                                   {"parallel.bucket_mb", "1"},
                                                                                   {"train.micro_batch", "4"},
                                                                                   {"train.recompute", "full"},
                                                                                   {"train.loss_chunk", "64"},
                                                                                   {"train.precision", "mixed_sr"},
                                                                                   {"data.validate_every", "7"},
                                                                                   {"data.validate_rows", "3"},
                                                                                   {"data.tokenizer", "moved/tokenizer.json"},
                                                                                   {"data.workers", "2"},
                                                                                   {"data.cache_dir", "/c"},
                                                                                   {"device.threads", "3"},
                                                                                   {"run.dir", "elsewhere"},
                                                                                   {"run.tensorboard", "false"},
                                                                                   {"checkpoint.every", "5"}})
    now = with(now, key, value);
  now.data.sources.resize(1);
  now.data.stages.resize(1);
  const std::vector<std::string> lines = check_continuation(saved, now, false);
  EXPECT_TRUE(has(lines, "parallel.tp 1 -> 2"));
  EXPECT_TRUE(has(lines, "train.steps 100 -> 200"));
  EXPECT_TRUE(has(lines, "data.sources [] -> [1 item]"));
  EXPECT_EQ(lines.size(), config_changes(saved, now).size() - 1) << "every change but optim.schedule_steps, which is the end there was";
}

TEST(Continuation, ContradictionsAreAllNamedWithBothValuesAndWhatToDo) {
  const Config saved = saved_run();
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"run.seed", "1"},       {"model.hidden", "256"},      {"model.rope_theta", "5e5"}, {"model.norm_eps", "0.1"},
      {"train.seq_len", "64"}, {"train.global_batch", "32"}, {"data.seed", "9"},          {"data.validation", "0.1"},
      {"data.bos", "true"},    {"data.eos", "</s>"}};
  for (const bool forked : {false, true}) {
    Config now = saved;
    for (const auto& [key, value] : wrong) {
      now = with(now, key, value);
      EXPECT_NE(refusal(saved, with(saved, key, value), forked).find(key + " = "), std::string::npos) << key;
    }
    const std::string text = refusal(saved, now, forked);
    EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), wrong.size()) << text;
    EXPECT_NE(text.find("train.global_batch = 32: the saved run has 16; only a new run can have another one: checkpoint.init_from"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("data.eos = </s>: the saved run has \"\"; "), std::string::npos) << text;
    EXPECT_NE(text.find("\na continued run may change run.* (but run.seed), model.coalesced, train.steps, "), std::string::npos) << text;
  }
}

TEST(Continuation, TwoWaysToWriteOneModelAreEqual) {
  const Config saved = saved_run();
  Config now = saved;
  now.model.preset = "";
  now.model.rope_low_freq_factor = 3;
  now.model.init_std = 0.5;
  EXPECT_EQ(check_continuation(saved, now, false),
            (std::vector<std::string>{"model.preset nano -> \"\": says nothing about weights that exist",
                                      "model.init_std 0.08 -> 0.5: says nothing about weights that exist"}));
  Config all_heads = saved, explicit_heads = saved;
  all_heads.model.kv_heads = 0, explicit_heads.model.kv_heads = saved.model.heads;
  EXPECT_TRUE(check_continuation(all_heads, explicit_heads, false).empty());
  Config stretched = saved;
  stretched.model.rope_scaling = "llama3";
  Config other = stretched;
  other.model.rope_low_freq_factor = 3;
  EXPECT_NE(refusal(stretched, other), "");
}

TEST(Continuation, TiedToUntiedOnlyThroughInitFromUntiedToTiedNever) {
  Config untied = saved_run(), tied = untied;
  tied.model.tied = true;
  for (const bool forked : {false, true}) {
    const std::string apart = refusal(tied, untied, forked), together = refusal(untied, tied, forked);
    EXPECT_NE(apart.find("model.tied = false: the saved run has true; "), std::string::npos) << apart;
    EXPECT_NE(apart.find("checkpoint.init_from"), std::string::npos) << apart;
    EXPECT_NE(together.find("would be lost"), std::string::npos) << together;
    EXPECT_EQ(together.substr(0, together.find('\n')).find("init_from"), std::string::npos) << together;
  }
}

TEST(Continuation, TheOptimizerChangesOnlyInAFork) {
  const Config saved = saved_run(), now = with(with(saved, "optim.lr", "1e-5"), "optim.clip", "0.5");
  const std::string text = refusal(saved, now);
  EXPECT_NE(text.find("optim.lr = 1e-05: the saved run has 0.0003; checkpoint.resume_from=STEP forks"), std::string::npos) << text;
  EXPECT_NE(text.find("\noptim.clip = 0.5"), std::string::npos) << text;
  EXPECT_EQ(check_continuation(saved, now, true), (std::vector<std::string>{"optim.lr 0.0003 -> 1e-05", "optim.clip 1 -> 0.5"}));
}

TEST(Continuation, MoreStepsUnderScheduleStepsAutoSayWhichKeyToGiveAndItWorks) {
  const Config saved = saved_run();
  const Config longer = with(saved, "train.steps", "200");
  for (const bool forked : {false, true}) {
    const std::string text = refusal(saved, longer, forked);
    EXPECT_NE(text.find("optim.schedule_steps = auto: train.steps is 200 now"), std::string::npos) << text;
    EXPECT_NE(text.find("optim.schedule_steps=100 to keep its curve, or optim.schedule_steps=200 for a new one"), std::string::npos)
        << text;
    EXPECT_NE(refusal(saved, with(saved, "train.steps", "50"), forked), "") << "fewer steps move it too";
  }
  const Config kept = with(longer, "optim.schedule_steps", "100"), moved = with(longer, "optim.schedule_steps", "200");
  EXPECT_EQ(check_continuation(saved, kept, false), (std::vector<std::string>{"train.steps 100 -> 200"}));
  EXPECT_TRUE(has(check_continuation(saved, moved, false), "the learning-rate schedule ends at step 200, before at 100"));
  // The next start is with the checkpoint of the first continuation.
  EXPECT_TRUE(check_continuation(kept, kept, false).empty());
  EXPECT_NE(refusal(kept, longer), "") << "the key may not be forgotten later";
  EXPECT_EQ(check_continuation(kept, with(kept, "train.steps", "300"), false), (std::vector<std::string>{"train.steps 200 -> 300"}));
}

TEST(Continuation, AConstantLearningRateHasNoEndToMove) {
  const Config saved = with(saved_run(), "optim.schedule", "constant");
  EXPECT_NO_THROW(check_continuation(saved, with(saved, "train.steps", "200"), false));
  EXPECT_NE(refusal(saved, with(with(saved, "train.steps", "200"), "optim.schedule", "cosine"), true), "");
}

TEST(Continuation, EveryKeyHasARule) {
  // Two configs that differ in every key: none may be overlooked, and a key without a rule fails a check.
  Config saved = with_items(1), now = with_items(1);
  for (const Field& f : all_fields(now)) {
    if (auto* const* v = std::get_if<bool*>(&f.value)) **v = !**v;
    if (auto* const* v = std::get_if<int64_t*>(&f.value)) **v += 1;
    if (auto* const* v = std::get_if<uint64_t*>(&f.value)) **v += 1;
    if (auto* const* v = std::get_if<double*>(&f.value)) **v += 0.01;
    if (auto* const* v = std::get_if<std::string*>(&f.value)) **v += "x";
  }
  const std::string text = refusal(saved, now);
  EXPECT_NE(text, "");
  for (const KeyChange& change : config_changes(saved, now)) {
    if (change.key.starts_with("optim.") && change.key != "optim.schedule_steps") {
      EXPECT_NE(text.find("\n" + change.key + " = "), std::string::npos) << change.key;
    }
  }
}

}  // namespace
}  // namespace hlat
