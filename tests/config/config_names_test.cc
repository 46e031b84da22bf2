// Names that are not ours: keys, sections and values of other programs, forms of numbers, tabs, and files that are not there.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "base/error.h"
#include "config/fields.h"
#include "config/foreign.h"
#include "config/load.h"
#include "config/nearest_file.h"
#include "support/message_of.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::TempDir;

// What is said about one word of the command line, without its "command line: key = value: ".
std::string about(const std::string& word) {
  try {
    load_config("", {word});
  } catch (const UsageError& e) {
    const std::string text = e.what();
    const std::string start = "command line: " + std::string(word).replace(word.find('='), 1, " = ") + ": ";
    return text.starts_with(start) ? text.substr(start.size()) : text;
  }
  return "";
}

TEST(ConfigNames, KeysOfOtherProgramsGiveOurs) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"learning_rate=1e-3", "here it is optim.lr"},
      {"train.learning_rate=1e-3", "here it is optim.lr"},
      {"lr=1e-3", "did you mean optim.lr?"},
      {"max_steps=10", "here it is train.steps"},
      {"train.save_interval=5", "here it is checkpoint.every, in steps"},
      {"train.resume_from_checkpoint=x",
       "the command that started a run resumes it; checkpoint.resume_from=STEP goes back to an earlier checkpoint"},
      {"parallel.vpp=2", "here it is parallel.chunks"},
      {"parallel.cp=2", "there is no context parallelism; parallel.sequence splits the tokens over parallel.tp"},
      {"trainer.max_steps=10", "here it is train.steps"},
      {"num_train_epochs=2", "here it is train.epochs"},
      {"model.num_layers=2", "here it is model.layers"},
      {"model.n_embd=64", "here it is model.hidden"},
      {"model.hidden_size=64", "here it is model.hidden"},
      {"model.num_attention_heads=4", "here it is model.heads"},
      {"intermediate_size=64", "here it is model.ffn"},
      {"per_device_train_batch_size=4", "here it is train.micro_batch"},
      {"block_size=64", "here it is train.seq_len"},
      {"bf16=true", "here it is train.precision"},
      {"distributed_strategy.tensor_model_parallel_size=8", "here it is parallel.tp"},
      {"--Tensor-Model-Parallel-Size=8", "here it is parallel.tp"},
      {"model.optim.lr=1e-3", "did you mean optim.lr?"},
      {"warmup_iters=5", "here it is optim.warmup, in steps"},
      {"output_dir=a", "here it is run.dir"},
      {"data.path=a.txt", "here it is data.sources[0].path"},
      {"fp8-format=hybrid", "train.precision=fp8 is FP8 (E4M3, gradients E5M2), precision.fp8_grads=e4m3 takes E4M3 for gradients too"},
      {"fp8_wgrad=false", "here it is precision.weight_grads"},
      {"gradient_accumulation_steps=4", "it follows from train.global_batch / (train.micro_batch x parallel.dp)"},
      {"batch_size=8", "train.global_batch is the sequences per optimizer step, train.micro_batch those per forward and backward"},
  };
  for (const auto& [word, expected] : cases) EXPECT_EQ(about(word), "unknown key; " + expected) << word;
}

TEST(ConfigNames, SectionsOfOtherProgramsGiveOurs) {
  const auto about_section = [](const std::string& name) {
    const TempDir dir;
    const std::string path = dir.write("c.yaml", name + ": {a: 1}\n");
    return message_of([&] { load_config(path); }).substr(path.size() + 4);
  };
  EXPECT_EQ(about_section("distributed_strategy"), "distributed_strategy: unknown section; did you mean parallel?");
  EXPECT_EQ(about_section("trainer"), "trainer: unknown section; did you mean train?");
  EXPECT_EQ(about_section("exp_manager"), "exp_manager: unknown section; did you mean run?");
  EXPECT_EQ(about_section("batch_size"),
            "batch_size: unknown section; train.global_batch is the sequences per optimizer step, train.micro_batch those per forward and "
            "backward");
}

// A key that was renamed here must not live on in what is said about the names of others.
TEST(ConfigNames, EveryAnswerNamesKeysThatExist) {
  Config any = with_items(1);
  std::set<std::string> keys;
  for (const Field& f : all_fields(any)) keys.insert(f.key());
  const std::string source = test::slurp(test::source_path("src/config/foreign.cc"));
  const std::regex named("Row\\{\"([^\"]*)\"");
  const std::regex key("(run|model|train|precision|parallel|optim|data|device|checkpoint)\\.[a-z0-9_]+(\\[0\\]\\.[a-z]+)?");
  int found = 0;
  for (std::sregex_iterator row(source.begin(), source.end(), named), end; row != end; ++row) {
    const std::string answer = (*row)[1];
    for (std::sregex_iterator k(answer.begin(), answer.end(), key); k != end; ++k, ++found)
      EXPECT_TRUE(keys.contains(k->str())) << k->str() << " in: " << answer;
  }
  EXPECT_GT(found, 60);
}

TEST(ConfigNames, DevicesSayWhichThereAreAndHowACardIsChosen) {
  for (const std::string text : {"a100", "gpu", "cuda:0", "H100-80", "nvidia"}) {
    const std::string message = about("device.backend=" + text);
    EXPECT_TRUE(message.starts_with("must be one of auto, cpu, cuda; did you mean cuda? ")) << message;
    EXPECT_NE(message.find("CUDA_VISIBLE_DEVICES"), std::string::npos) << message;
  }
  EXPECT_EQ(about("device.backend=rocm"), "must be one of auto, cpu, cuda; other accelerators are not supported");
  EXPECT_EQ(about("device.backend=cud"), "must be one of auto, cpu, cuda; did you mean cuda?");
}

TEST(ConfigNames, ValuesOfOtherProgramsGiveOurs) {
  const auto ends_with = [](const std::string& word, const std::string& end) { EXPECT_TRUE(about(word).ends_with(end)) << about(word); };
  ends_with("train.precision=bfloat16", "; did you mean mixed?");
  ends_with("train.precision=float32", "; did you mean fp32?");
  ends_with("train.precision=fp16", "; the nearest is mixed, which computes in bf16 and needs no loss scaling");
  ends_with("optim.schedule=wsd", "; did you mean warmup_stable_decay?");
  ends_with("train.recompute=true", "; did you mean full?");
  ends_with("run.tensorboard=True", "; did you mean true?");
  ends_with("run.tensorboard=0", "; did you mean false?");
}

TEST(ConfigNames, LargeIntegersInOtherForms) {
  const std::string must = "must be an integer from 0 to 4611686018427387904";
  const std::vector<std::pair<std::string, std::string>> cases = {{"1e9", "1000000000"},    {"2.5B", "2500000000"},
                                                                  {"1.1B", "1100000000"},   {"300M", "300000000"},
                                                                  {"1_000_000", "1000000"}, {"1.8T", "1800000000000"}};
  for (const auto& [text, meant] : cases) EXPECT_EQ(about("train.tokens=" + text), must + "; did you mean " + meant + "?") << text;
  for (const std::string text : {"-1e9", "1.5", "1e99", "many", "k", "1kk"}) EXPECT_EQ(about("train.tokens=" + text), must) << text;
}

TEST(ConfigNames, ATabIsNamedWithItsLine) {
  const auto message = [](const std::string& yaml) {
    const TempDir dir;
    const std::string path = dir.write("c.yaml", yaml);
    return message_of([&] { load_config(path); }).substr(path.size());
  };
  EXPECT_EQ(message("train:\n\tsteps: 5\n"), ":2: is indented with a tab; YAML allows blanks only");
  EXPECT_EQ(message("# \t\ntrain:\n  seq_len: 8\n \tsteps: 5\n"), ":4: is indented with a tab; YAML allows blanks only");
  EXPECT_NE(message("train: [\nsteps:\t5\n").find("is not valid YAML"), std::string::npos) << "a tab after a word is allowed";
}

TEST(ConfigNames, FilesThatAreNotThere) {
  const TempDir dir;
  std::filesystem::create_directory(dir.path("configs"));
  dir.write("configs/small.yaml", "");
  dir.write("train.yaml", "");
  const auto hint = [&](const std::string& name) { return file_hint(dir.path(name)); };
  const auto meant = [&](const std::string& name) { return "; did you mean " + dir.path(name) + "?"; };
  EXPECT_EQ(hint("tarin.yaml"), meant("train.yaml"));
  EXPECT_EQ(hint("train"), meant("train.yaml"));
  EXPECT_EQ(hint("small"), meant("configs/small.yaml"));
  EXPECT_EQ(hint("configs/samll.yml"), meant("configs/small.yaml"));
  EXPECT_EQ(hint("configs"), "; its files are small.yaml");
  EXPECT_EQ(hint("config/small.yaml"), "; there is no folder " + dir.path("config"));
  EXPECT_EQ(hint("a/b/c/small.yaml"), "; there is no folder " + dir.path("a"));
  EXPECT_EQ(hint("something_else.json"), "");
  const std::string whole = message_of([&] { load_config(dir.path("tarin.yaml")); });
  EXPECT_EQ(whole, dir.path("tarin.yaml") + ": cannot be read: No such file or directory" + meant("train.yaml"));
}

}  // namespace
}  // namespace hlat
