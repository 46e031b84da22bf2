// Reading and printing the configuration: precedence, presets, round trips. Messages: config_messages_test.cc.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/load.h"
#include "config/nearest.h"
#include "config/print.h"
#include "config/reference.h"
#include "config/validate.h"
#include "config/value.h"
#include "support/config_text.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::config_of;
using test::TempDir;

std::string config_path(std::string_view name) { return test::source_path("configs/") + std::string(name) + ".yaml"; }

TEST(ConfigLoad, NothingWrittenGivesDefaults) {
  EXPECT_EQ(config_of(""), Config{});
  EXPECT_EQ(config_of("# only a comment\n"), Config{});
  EXPECT_EQ(config_of("model:\n  # layers: 5\n"), Config{});
  EXPECT_EQ(load_config("").config, Config{});
}

TEST(ConfigLoad, ReadsEveryKindOfValue) {
  const Config c = config_of(
      "run: {dir: \"a b: #c\", seed: 18446744073709551615, tensorboard: false}\n"
      "model: {kv_heads: auto, rope_theta: 5e5}\n"
      "train: {precision: bf16_sr, recompute: every:3}\n"
      "parallel: {pp: 3, dp: auto, cuts: [1, 2]}\n"
      "optim: {schedule: warmup_stable_decay, schedule_steps: auto, clip: 0}\n"
      "device: {threads: auto}\n");
  EXPECT_EQ(c.run.dir, "a b: #c");
  EXPECT_EQ(c.run.seed, 18446744073709551615u);
  EXPECT_FALSE(c.run.tensorboard);
  EXPECT_EQ(c.model.kv_heads, 0);
  EXPECT_EQ(c.model.kv(), 4);
  EXPECT_EQ(c.model.rope_theta, 500000.0);
  EXPECT_EQ(c.train.precision, PrecisionKind::bf16_sr);
  EXPECT_EQ(c.train.recompute, (Recompute{RecomputeKind::full, 3}));
  EXPECT_EQ(c.parallel.dp, 0);
  EXPECT_EQ(c.parallel.cuts, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(c.optim.schedule, ScheduleKind::warmup_stable_decay);
  EXPECT_EQ(c.optim.schedule_steps, 0);
  EXPECT_EQ(c.optim.clip, 0.0);
  EXPECT_EQ(c.device.threads, 0);
}

TEST(ConfigLoad, ListsOfIntegers) {
  using List = std::vector<int64_t>;
  const std::string three = "parallel: {pp: 3, cuts: [1, 2]}\n";
  EXPECT_EQ(config_of("parallel:\n  pp: 3\n  cuts:\n    - 1\n    - 3\n").parallel.cuts, (List{1, 3}));
  EXPECT_EQ(config_of("parallel: {pp: 3, cuts: \"1,3\"}\n").parallel.cuts, (List{1, 3}));
  EXPECT_EQ(config_of("parallel: {cuts: []}\n").parallel.cuts, List{});
  for (const std::string text : {"[1,3]", "1,3", "[1, 3]", "[ 1 ,3 ]"}) {
    EXPECT_EQ(config_of(three, {"parallel.cuts=" + text}).parallel.cuts, (List{1, 3})) << text;
  }
  EXPECT_EQ(config_of("parallel: {pp: 2}\n", {"parallel.cuts=3"}).parallel.cuts, List{3});
  EXPECT_EQ(config_of(three, {"parallel.cuts=[]"}).parallel.cuts, List{});
  EXPECT_EQ(config_of(three, {"parallel.cuts=[ ]"}).parallel.cuts, List{});
  EXPECT_NE(to_yaml(config_of(three)).find("\n  cuts: [1, 2]\n"), std::string::npos);
  EXPECT_NE(to_yaml(Config{}).find("\n  cuts: []\n"), std::string::npos);
}

TEST(ConfigLoad, ListsOfItems) {
  const std::string yaml =
      "data:\n"
      "  tokenizer: t.json\n"
      "  sources:\n"
      "    - {name: web, path: \"web/*.jsonl\", weight: 3}\n"
      "    - path: books.txt\n"
      "      field: body\n"
      "  stages:\n"
      "    - {from_tokens: 4096, weights: {web: 1, books.txt: 0.5}}\n";
  const DataConfig d = config_of(yaml).data;
  ASSERT_EQ(d.sources.size(), 2u);
  EXPECT_EQ(d.sources[0], (SourceConfig{"web", "web/*.jsonl", 3, "text"}));
  EXPECT_EQ(d.sources[1].id(), "books.txt");
  EXPECT_EQ(d.sources[1].field, "body");
  ASSERT_EQ(d.stages.size(), 1u);
  EXPECT_EQ(d.stages[0].weights, (Weights{{"web", 1}, {"books.txt", 0.5}}));
  EXPECT_EQ(d.stages[0].first_step(1000), 6) << "five steps have 5000 tokens";
  EXPECT_EQ((DataStage{.from_step = 0, .from_tokens = 4000, .weights = {}}.first_step(1000)), 5);

  // Single keys, one more item, and a fresh list.
  const DataConfig e =
      config_of(yaml, {"data.sources[0].weight=7", "data.sources[2].path=c.txt", "data.stages[0].weights=web:2,c.txt:1"}).data;
  ASSERT_EQ(e.sources.size(), 3u);
  EXPECT_EQ(e.sources[0].weight, 7);
  EXPECT_EQ(e.sources[1], d.sources[1]);
  EXPECT_EQ(e.sources[2].path, "c.txt");
  EXPECT_EQ(e.stages[0].weights, (Weights{{"web", 2}, {"c.txt", 1}}));
  const DataConfig f = config_of(yaml, {"data.sources=[]", "data.sources[0].path=new.txt", "data.stages=[]"}).data;
  ASSERT_EQ(f.sources.size(), 1u);
  EXPECT_EQ(f.sources[0], (SourceConfig{"", "new.txt", 1, "text"}));
  EXPECT_TRUE(f.stages.empty());
  EXPECT_EQ(to_json(config_of(yaml))["data"]["sources"][0]["weight"], 3);
  EXPECT_EQ(to_json(config_of(yaml))["data"]["stages"][0]["weights"]["books.txt"], 0.5);
}

TEST(ConfigLoad, CommandLineOverFileOverPresetOverDefaults) {
  // The preset stands last in the file and still comes first.
  const std::string yaml = "model:\n  layers: 7\n  init_std: 0.5\n  preset: llama-1b\n";
  const Config file = config_of(yaml);
  EXPECT_EQ(file.model.layers, 7);
  EXPECT_EQ(file.model.init_std, 0.5);
  EXPECT_EQ(file.model.hidden, 2048);
  EXPECT_EQ(file.model.kv_heads, 4);
  EXPECT_EQ(file.train, TrainConfig{});

  const Config both = config_of(yaml, {"model.layers=9", "train.steps=20", "train.steps=30"});
  EXPECT_EQ(both.model.layers, 9);
  EXPECT_EQ(both.model.init_std, 0.5);
  EXPECT_EQ(both.train.steps, 30);  // the later word

  const Config other = config_of(yaml, {"model.preset=hlat-70b"});
  EXPECT_EQ(other.model.preset, "hlat-70b");
  EXPECT_EQ(other.model.hidden, 8192);
  EXPECT_EQ(other.model.layers, 7);
  EXPECT_EQ(config_of(yaml, {"model.preset="}).model.hidden, ModelConfig{}.hidden);
}

TEST(ConfigLoad, RemembersOrigins) {
  const TempDir dir;
  const std::string path = dir.write("c.yaml", "train:\n  steps: 50\nmodel: {preset: nano}\n");
  const LoadedConfig loaded = load_config(path, {"train.seq_len=64"});
  EXPECT_EQ(loaded.origins.at("train.steps").str(), path + ":2");
  EXPECT_EQ(loaded.origins.at("train.seq_len").str(), "command line");
  EXPECT_EQ(loaded.origins.at("model.heads").str(), "preset nano");
  EXPECT_FALSE(loaded.origins.contains("optim.lr"));
}

struct Change {
  void operator()(int64_t* v) const { *v = *v == 0 ? 2 : *v * 2; }
  void operator()(uint64_t* v) const { *v = 18446744073709551615u - *v; }
  void operator()(double* v) const { *v = *v / 3; }  // no short decimal form
  void operator()(bool* v) const { *v = !*v; }
  void operator()(std::string* v) const { *v = "a \"b\": \\ #c\n\té"; }
  void operator()(std::vector<int64_t>* v) const { *v = {1, 3, 7}; }
  void operator()(PrecisionKind* v) const { *v = PrecisionKind::mixed_sr; }
  void operator()(ScheduleKind* v) const { *v = ScheduleKind::linear; }
  void operator()(Recompute* v) const { *v = {RecomputeKind::full, 3}; }
  void operator()(Weights* v) const { *v = {{"a: b", 0.1}, {"*.jsonl", 2.0 / 3}}; }
  template <class Item>
  void operator()(std::vector<Item>*) const {}  // its items have fields of their own
};

// A Config in which no field has its default: writing, reading and comparing then miss no field.
Config unlike_defaults() {
  Config c = with_items(2);
  for (const Field& f : all_fields(c)) {
    if (f.limits.choices.empty()) {
      std::visit(Change{}, f.value);
    } else {
      *std::get<std::string*>(f.value) = f.limits.choices.back();
    }
  }
  c.optim.schedule_steps = 1000;
  c.model.rope_theta = 10001.0 / 3;
  c.model.rope_factor = 7.0 / 3;
  c.checkpoint.minutes = 7.0 / 3;
  c.checkpoint.staging_mb = 64;
  c.eval.cache_tokens = 4096;
  c.launch.straggler_steps = 40;
  c.fault = {.inject = "kill rank=1 step=2", .every_s = 7.0 / 3, .kinds = "kill,hang", .seed = 9};
  // What the rules between the keys of items ask for.
  c.data.validation = 0.25;
  c.data.validate_rows = 4;
  c.data.sources[0].name = c.data.stages[0].weights.begin()->first;
  c.data.sources[1].name = c.data.stages[0].weights.rbegin()->first;
  c.data.stages[0].from_tokens = 0;
  c.data.stages[1].from_step = 0;
  c.data.stages[1].from_tokens = 1 << 20;
  // One key gives the length of a run.
  c.train.tokens = 12345678;
  c.train.epochs = 0;
  c.train.steps = (c.train.tokens - 1) / (c.train.global_batch * c.train.seq_len) + 1;
  // And one says where it starts.
  c.checkpoint.init_from = "";
  c.loss.alarms = "leak,drift";
  // Without FP8 products these say nothing.
  c.precision.fp8_grads = c.precision.weight_grads = "";
  return c;
}

TEST(ConfigPrint, ReadsBackIdentical) {
  const Config c = unlike_defaults();
  Config changed = c, defaults = with_items(2);
  const std::vector<Field> a = all_fields(changed), b = all_fields(defaults);
  int same = 0;
  for (size_t i = 0; i < a.size(); ++i) same += text_of(a[i]) == text_of(b[i]) ? 1 : 0;
  EXPECT_EQ(same, 8) << "the two lists, of each stage one of the keys that exclude each other, train.epochs, which train.tokens excludes, "
                        "checkpoint.init_from, which resume_from excludes, and two keys of FP8 products";
  EXPECT_EQ(config_of(to_yaml(c)), c);
  EXPECT_EQ(config_of(to_yaml(Config{})), Config{});
}

TEST(ConfigPrint, WordsForZero) {
  const std::string text = to_yaml(Config{});
  for (const std::string line : {"\n  kv_heads: auto\n", "\n  schedule_steps: auto\n", "\n  threads: auto\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(ConfigPrint, JsonHasTypedValues) {
  const nlohmann::ordered_json json = to_json(config_of("model: {preset: hlat-70b}\noptim: {lr: 1.5e-4}\n"));
  EXPECT_EQ(json["model"]["kv_heads"], 8);
  EXPECT_EQ(json["optim"]["lr"], 1.5e-4);
  EXPECT_EQ(json["run"]["tensorboard"], true);
  EXPECT_EQ(json["train"]["precision"], "fp32");
  EXPECT_EQ(json["device"]["threads"], "auto");
  EXPECT_EQ(json["parallel"]["dp"], "auto");
  EXPECT_EQ(json["parallel"]["cuts"], nlohmann::json::array());
  EXPECT_EQ(to_json(config_of("parallel: {pp: 2, cuts: [3]}\n"))["parallel"]["cuts"], nlohmann::json({3}));
  size_t keys = 0;
  for (const auto& section : json) keys += section.size();
  Config any;
  EXPECT_EQ(keys, all_fields(any).size());
}

TEST(ConfigPrint, CommittedReferenceIsCurrent) {
  EXPECT_EQ(test::slurp(test::source_path("docs/config.md")), config_reference()) << "run: build/hlat config --reference > docs/config.md";
}

TEST(ConfigPresets, EveryOneHasAConfigThatLoads) {
  for (const std::string_view name : preset_names()) {
    const Config c = load_config(config_path(name)).config;
    EXPECT_EQ(c.model, *find_preset(name)) << name;
    EXPECT_EQ(c.run.dir, "runs/" + std::string(name));
    EXPECT_EQ(c.data.embedded, !name.starts_with("hlat")) << name;
  }
}

// Parameters of the untied Llama shape.
int64_t parameters(const ModelConfig& m) {
  const int64_t attention = m.hidden * m.hidden * 2 + 2 * m.hidden * m.head_dim() * m.kv();
  return 2 * m.vocab * m.hidden + m.layers * (attention + 3 * m.hidden * m.ffn + 2 * m.hidden) + m.hidden;
}

TEST(ConfigPresets, HlatIsAsPublished) {
  const Config small = load_config(config_path("hlat-7b")).config;
  const Config large = load_config(config_path("hlat-70b")).config;
  EXPECT_EQ(parameters(small.model), 6738415616);
  EXPECT_EQ(parameters(large.model), 68976648192);
  EXPECT_EQ(small.model.init_std, 0.021);
  EXPECT_EQ(large.model.init_std, 0.02);
  EXPECT_EQ(small.optim.lr, 3e-4);
  EXPECT_EQ(large.optim.lr, 1.5e-4);
  EXPECT_EQ(small.train.precision, PrecisionKind::bf16_sr);
  EXPECT_EQ(large.train.precision, PrecisionKind::mixed);
  EXPECT_EQ(small.parallel, (ParallelConfig{.tp = 8, .pp = 1, .dp = 256, .sequence = true, .zero1 = false}));
  EXPECT_EQ(large.parallel, (ParallelConfig{.tp = 32, .pp = 8, .dp = 32, .sequence = true, .zero1 = true}));
  EXPECT_EQ(small.parallel.ranks(), 2048);
  EXPECT_EQ(large.parallel.ranks(), 8192);
  for (const Config& c : {small, large}) {
    EXPECT_EQ(c.run.seed, 12349u);
    EXPECT_EQ(c.data.seed, 1234u);
    EXPECT_EQ(c.model.norm_eps, 1e-5);
    EXPECT_EQ(c.model.rope_theta, 10000);
    EXPECT_FALSE(c.model.tied);
    EXPECT_EQ(c.train.steps, 429153);
    EXPECT_EQ(c.train.seq_len, 4096);
    EXPECT_EQ(c.train.global_batch, 1024);
    EXPECT_EQ(c.train.micro_batch, 1);
    EXPECT_EQ(c.train.recompute, (Recompute{RecomputeKind::selective, 0}));
    EXPECT_EQ(c.optim.schedule, ScheduleKind::cosine_clamped);
    EXPECT_EQ(c.optim.warmup, 2000);
    EXPECT_EQ(c.optim.schedule_steps, 500000);
    EXPECT_EQ(c.optim.min_ratio, 0.1);
    EXPECT_EQ(c.optim.beta1, 0.9);
    EXPECT_EQ(c.optim.beta2, 0.95);
    EXPECT_EQ(c.optim.eps, 1e-8);
    EXPECT_EQ(c.optim.weight_decay, 0.1);
    EXPECT_TRUE(c.optim.decay_norms);
    EXPECT_EQ(c.optim.clip, 1.0);
  }
}

TEST(ConfigValidate, FindsEverythingInAConfigMadeByCode) {
  Config c;
  EXPECT_TRUE(validate(c).empty());
  c.model.heads = 0;  // must not be divided by
  c.model.vocab = 1;
  c.optim.beta1 = std::numeric_limits<double>::quiet_NaN();
  c.train.micro_batch = 3;
  c.device.isa = "mmx";
  std::set<std::string> keys;
  for (const Violation& v : validate(c)) keys.insert(v.keys.front());
  EXPECT_EQ(keys, (std::set<std::string>{"model.heads", "model.vocab", "optim.beta1", "train.micro_batch", "device.isa"}));
}

TEST(ConfigRecompute, NamesReadBack) {
  for (const Recompute r : {Recompute{RecomputeKind::none, 0}, Recompute{RecomputeKind::selective, 0}, Recompute{RecomputeKind::full, 0},
                            Recompute{RecomputeKind::full, 4}}) {
    Recompute back{RecomputeKind::full, 99};
    EXPECT_TRUE(parse_recompute(r.str(), back)) << r.str();
    EXPECT_EQ(back, r) << r.str();
  }
  Recompute kept{RecomputeKind::selective, 0};
  for (const std::string_view text : {"", "every", "every:", "every:0", "every:-1", "every:2x", "Full"}) {
    EXPECT_FALSE(parse_recompute(text, kept)) << text;
    EXPECT_EQ(kept.str(), "selective");
  }
}

TEST(EditDistance, CountsSwapsAsOne) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("heads", "haeds"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  const std::vector<std::string_view> names = {"beta1", "beta2", "eps"};
  EXPECT_EQ(nearest("beta_2", names), "beta2");
  EXPECT_EQ(nearest("momentum", names), "");
}

}  // namespace
}  // namespace hlat
