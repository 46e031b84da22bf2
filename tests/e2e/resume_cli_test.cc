// The same command starts and resumes: a run in parts is the run, what contradicts it is named, and going back, forking and starting from
// weights do what they say.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_folder.h"
#include "record/folder_lease.h"
#include "support/checkpoint_content.h"
#include "support/tiny_runs.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Resume : public TinyRuns {
 protected:
  Resume() : TinyRuns(12, 2, 4) {}

  // Its last step of each part is saved, however fast the steps are.
  void train_in_parts(const std::string& run, const std::vector<std::string>& more = {}, const std::vector<int>& ends = {4, 8, 12}) {
    for (const int end : ends) {
      std::vector<std::string> words = {"train.steps=" + std::to_string(end)};
      words.insert(words.end(), more.begin(), more.end());
      const RunResult part = train(run, words);
      ASSERT_EQ(part.exit_code, 0) << part.err;
    }
  }
  std::string events_of_end(const std::string& run) const { return events(run, "end").back()["reason"]; }
  std::vector<double> losses(const std::string& run) const {
    std::vector<double> values;
    for (const json& line : metrics(run)) {
      EXPECT_EQ(line["step"].get<size_t>(), values.size() + 1) << "every step once, in order";
      values.push_back(line["loss"].get<double>());
    }
    return values;
  }
};

TEST_F(Resume, ARunInPartsIsTheRunBitByBit) {
  ASSERT_EQ(train("whole").exit_code, 0);
  EXPECT_EQ(checkpoint_steps(dir_.path("whole/checkpoints")).front(), 4);
  EXPECT_EQ(checkpoint_steps(dir_.path("whole/checkpoints")).back(), 12);
  train_in_parts("parts", {}, {5, 8, 12});
  EXPECT_EQ(checkpoint_steps(dir_.path("parts/checkpoints")), (std::vector<int64_t>{4, 5, 8, 12}));
  EXPECT_EQ(losses("parts"), losses("whole"));
  EXPECT_EQ(checkpoint_content(step("parts", 12)), checkpoint_content(step("whole", 12)));
  const RunResult again = train("parts");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(again.err.find("step 12 of 12 is done"), std::string::npos) << again.err;
}

// Killed behind its last save: no step is trained again, what comes after the last one is done, and the time between is not the run's.
TEST_F(Resume, ARunThatWasKilledBehindItsLastStepIsBroughtToItsEnd) {
  ASSERT_EQ(train("run").exit_code, 0);
  const std::vector<json> steps = metrics("run");
  const std::vector<int64_t> saved = checkpoint_steps(dir_.path("run/checkpoints"));
  std::string events;
  for (const json& e : lines("run", "events.jsonl"))
    if (e["kind"] != "end") events += e.dump() + "\n";
  dir_.write("run/events.jsonl", events);
  fs::remove(dir_.path("run/ledger.json"));
  const RunResult rest = train("run", {"run.sample_lines=1"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_NE(rest.out.find("step 12 was done already; what comes after it took "), std::string::npos) << rest.out;
  EXPECT_EQ(rest.out.find("final loss"), std::string::npos) << rest.out;
  EXPECT_NE(rest.out.find("the model writes:"), std::string::npos) << rest.out;
  EXPECT_EQ(metrics("run"), steps);
  EXPECT_EQ(checkpoint_steps(dir_.path("run/checkpoints")), saved);
  EXPECT_TRUE(fs::exists(dir_.path("run/ledger.json")));
  EXPECT_EQ(events_of_end("run"), "finished");
  const json shown = json::parse(run_binary({"runs", "show", dir_.path("run"), "--json"}).out);
  EXPECT_EQ(shown["attempts"][0]["kept"], 12) << shown["attempts"];
  EXPECT_NE(train("run").err.find("step 12 of 12 is done"), std::string::npos);
}

TEST_F(Resume, OtherPrecisionAndMicroBatchGoOn) {
  ASSERT_EQ(train("run", {"train.steps=4"}).exit_code, 0);
  const RunResult next = train("run", {"train.steps=8", "train.precision=mixed", "train.micro_batch=4", "train.recompute=full"});
  ASSERT_EQ(next.exit_code, 0) << next.err;
  EXPECT_NE(next.err.find("train.precision fp32 -> mixed"), std::string::npos) << next.err;
  EXPECT_NE(next.err.find("masters"), std::string::npos) << "what was made of what: " << next.err;
  EXPECT_EQ(losses("run").size(), 8u);
}

// Also where the first step is passed over and saved: in parts it is the run.
TEST_F(Resume, ScalesOfFp8AreMeasuredWhereThereAreNone) {
  ASSERT_EQ(train("run", {"train.steps=4", "train.precision=mixed", "data.validation=0.1"}).exit_code, 0);
  const std::vector<std::string> fp8 = {"checkpoint.resume_from=" + step("run", 4),
                                        "train.precision=fp8",
                                        "monitor.every=1",
                                        "data.validation=0.1",
                                        "data.validate_every=1",
                                        "--skip",
                                        "5"};
  train_in_parts("whole", fp8, {8});
  train_in_parts("parts", fp8, {5, 8});
  EXPECT_EQ(checkpoint_content(step("parts", 8)), checkpoint_content(step("whole", 8)));
  for (const char* run : {"whole", "parts"}) {
    const std::string log = slurp(dir_.path(run) + "/log.txt");
    EXPECT_NE(log.find("FP8: scales measured on the first batch in "), std::string::npos) << log;
    std::ifstream in(dir_.path(run) + "/metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      const json m = json::parse(line);
      EXPECT_EQ(m.contains("val_loss"), m["step"] > 5) << "step 5 has no scales to validate with: " << line;
      if (m["step"] == 6) {
        EXPECT_EQ(m["monitors"]["fp8_saturated"], json::parse("[0.0, 0.0, 0.0]"));
      }
    }
  }
  EXPECT_EQ(train("new", {"train.steps=2", "train.precision=fp8", "checkpoint.init_from=" + step("run", 4)}).exit_code, 0);
  EXPECT_NE(slurp(dir_.path("new/log.txt")).find("FP8: scales measured on the first batch in "), std::string::npos);
  EXPECT_EQ(train("fresh", {"train.steps=2", "train.precision=fp8"}).exit_code, 0);
  EXPECT_EQ(slurp(dir_.path("fresh/log.txt")).find("FP8: scales measured"), std::string::npos) << "those of a new run are declared";
}

TEST_F(Resume, ContradictionsAreNamedKeyByKey) {
  ASSERT_EQ(train("run", {"train.steps=4", "optim.schedule_steps=auto"}).exit_code, 0);
  const RunResult wrong = train("run", {"optim.schedule_steps=auto", "train.global_batch=8", "model.layers=3", "optim.lr=1e-3"});
  EXPECT_EQ(wrong.exit_code, 2);
  for (const char* key : {"train.global_batch", "model.layers", "optim.lr", "optim.schedule_steps"})
    EXPECT_NE(wrong.err.find(key), std::string::npos) << key << " in " << wrong.err;
  EXPECT_EQ(metrics("run").size(), 4u) << "nothing was touched";
  EXPECT_EQ(train("run", {"optim.schedule_steps=4"}).exit_code, 0) << "what the message says to give";
}

TEST_F(Resume, GoingBackSetsLaterCheckpointsAndLinesAside) {
  train_in_parts("run");
  const std::vector<double> first = losses("run");
  const RunResult back = train("run", {"checkpoint.resume_from=4", "optim.lr=1e-3"});
  ASSERT_EQ(back.exit_code, 0) << back.err;
  const std::vector<double> second = losses("run");
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 5, second.begin())) << "the loss of step 5 is that of the weights of step 4";
  EXPECT_NE(first[7], second[7]);
  EXPECT_TRUE(fs::exists(dir_.path("run/checkpoints/previous_1/step_8")));
  EXPECT_TRUE(fs::exists(dir_.path("run/previous_3/metrics.jsonl"))) << "the first two have configs of the parts";
  // The same command continues what it began; here it is finished.
  const RunResult again = train("run", {"checkpoint.resume_from=4", "optim.lr=1e-3"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(again.err.find("step 12 of 12 is done"), std::string::npos) << again.err;
  const RunResult by_path = train("run", {"checkpoint.resume_from=" + step("run", 4) + "/", "optim.lr=1e-3"});
  EXPECT_EQ(by_path.exit_code, 0) << "a shell completes the name with a slash: " << by_path.err;
  EXPECT_NE(by_path.err.find("the run goes back to step 4"), std::string::npos) << by_path.err;
  const RunResult none = train("run", {"checkpoint.resume_from=5"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("checkpoints of steps 4, "), std::string::npos) << none.err;
}

TEST_F(Resume, AForkHasTheOptimizerAndTheData) {
  train_in_parts("run");
  const RunResult fork = train("fork", {"checkpoint.resume_from=" + step("run", 8)});
  ASSERT_EQ(fork.exit_code, 0) << fork.err;
  EXPECT_EQ(checkpoint_content(step("fork", 12)), checkpoint_content(step("run", 12)));
  EXPECT_NE(read_index(step("fork", 12)).run, read_index(step("run", 12)).run);
  EXPECT_EQ(metrics("fork").front()["step"], 9);
  const RunResult other = train("fork", {"checkpoint.resume_from=" + step("run", 4)});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("is of another run"), std::string::npos) << other.err;
}

TEST_F(Resume, WeightsAloneStartANewRun) {
  ASSERT_EQ(train("run").exit_code, 0);
  const RunResult next =
      train("next", {"checkpoint.init_from=" + step("run", 12), "train.steps=4", "train.seq_len=16", "optim.schedule_steps=4"});
  ASSERT_EQ(next.exit_code, 0) << next.err;
  const std::vector<double> before = losses("run"), after = losses("next");
  ASSERT_EQ(after.size(), 4u);
  EXPECT_LT(after[0], before[0] - 0.1) << "it has learned already";
  EXPECT_EQ(
      train("next", {"checkpoint.init_from=" + step("run", 12), "train.steps=8", "train.seq_len=16", "optim.schedule_steps=4"}).exit_code,
      0)
      << "the same keys continue it";
}

TEST_F(Resume, ADamagedCheckpointIsToldAndTheOneBeforeTaken) {
  ASSERT_EQ(train("whole").exit_code, 0);
  ASSERT_EQ(train("run", {"train.steps=8"}).exit_code, 0);
  const std::string file = step("run", 8) + "/rank_00000.safetensors";
  std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
  f.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
  f.put('\x55');
  f.close();
  const RunResult next = train("run");
  ASSERT_EQ(next.exit_code, 0) << next.err;
  const size_t told = next.err.find("rank_00000.safetensors: piece");
  EXPECT_NE(told, std::string::npos) << next.err;
  EXPECT_EQ(next.err.find("rank_00000.safetensors: piece", told + 1), std::string::npos) << "once: " << next.err;
  EXPECT_TRUE(fs::exists(dir_.path("run/checkpoints/step_8.damaged")));
  EXPECT_EQ(checkpoint_content(step("run", 12)), checkpoint_content(step("whole", 12)));
  EXPECT_EQ(losses("run"), losses("whole"));
}

TEST_F(Resume, FreshSetsTheOldRunAside) {
  ASSERT_EQ(train("run", {"train.steps=4"}).exit_code, 0);
  const RunResult fresh = train("run", {"train.steps=4", "--fresh"});
  ASSERT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_EQ(losses("run").size(), 4u);
  EXPECT_TRUE(fs::exists(dir_.path("run/previous_1/checkpoints/step_4/index.json")));
  EXPECT_EQ(checkpoint_content(step("run", 4)), checkpoint_content(dir_.path("run/previous_1/checkpoints/step_4")));
}

TEST_F(Resume, TwoRunsAtOnceCannotHaveOneCheckpointDir) {
  const std::vector<std::string> words = {"train.steps=4", "checkpoint.dir=" + dir_.path("disk")};
  fs::create_directories(dir_.path("disk"));
  {
    const FolderLease other(dir_.path("disk"), 60);
    const RunResult second = train("run", words);
    EXPECT_EQ(second.exit_code, 2);
    EXPECT_NE(second.err.find("another run is writing to " + dir_.path("disk")), std::string::npos) << second.err;
  }
  ASSERT_EQ(train("run", words).exit_code, 0);
  EXPECT_FALSE(fs::exists(dir_.path("disk/run.lock"))) << "given back";
  EXPECT_EQ(train("run", {words[0], words[1], "--fresh"}).exit_code, 0);
}

TEST_F(Resume, AnotherCheckpointDirDoesNotBeginTheRunAnew) {
  ASSERT_EQ(train("run", {"train.steps=4"}).exit_code, 0);
  const RunResult moved = train("run", {"checkpoint.dir=" + dir_.path("disk")});
  EXPECT_EQ(moved.exit_code, 2);
  EXPECT_NE(moved.err.find("has some in " + dir_.path("run/checkpoints") + ", up to step 4"), std::string::npos) << moved.err;
  EXPECT_EQ(metrics("run").size(), 4u) << "nothing was touched";
  fs::rename(dir_.path("run/checkpoints"), dir_.path("disk"));
  EXPECT_EQ(train("run", {"checkpoint.dir=" + dir_.path("disk"), "train.steps=8"}).exit_code, 0) << "what the message says to do";
  const RunResult back = train("run");
  EXPECT_EQ(back.exit_code, 2);
  EXPECT_NE(back.err.find("give checkpoint.dir=" + dir_.path("disk")), std::string::npos) << back.err;
}

TEST_F(Resume, CheckpointsThatAreGoneDoNotBeginTheRunAnew) {
  ASSERT_EQ(train("run", {"train.steps=4"}).exit_code, 0);
  fs::rename(dir_.path("run/checkpoints"), dir_.path("not mounted"));
  const RunResult gone = train("run");
  EXPECT_EQ(gone.exit_code, 2);
  EXPECT_NE(gone.err.find("says that step 4 was saved"), std::string::npos) << gone.err;
  EXPECT_EQ(metrics("run").size(), 4u) << "nothing was touched";
  const std::vector<std::string> unsaved = {"checkpoint.every=0", "checkpoint.at_end=false"};
  EXPECT_EQ(train("run", {unsaved[0], unsaved[1], "--fresh"}).exit_code, 0);
  EXPECT_EQ(train("run", unsaved).exit_code, 0) << "saves of the run that was set aside are not those of this one";
}

TEST_F(Resume, AnAutomaticMicroBatchIsThatOfTheSavedRun) {
  ASSERT_EQ(train("run", {"train.steps=4", "train.micro_batch=2"}).exit_code, 0);
  ASSERT_EQ(train("run", {"train.steps=8", "train.micro_batch=auto"}).exit_code, 0);
  EXPECT_EQ(json::parse(read_index(step("run", 8)).config)["train"]["micro_batch"], 2);
  ASSERT_EQ(train("new", {"train.steps=4", "train.micro_batch=auto"}).exit_code, 0);
  EXPECT_EQ(json::parse(read_index(step("new", 4)).config)["train"]["micro_batch"], 4) << "what a new run takes";
}

TEST_F(Resume, DataThatChangedIsToldBeforeAnythingIsMoved) {
  ASSERT_EQ(run_binary({"data", "sample", "--out", dir_.path("data"), "--documents", "100"}).exit_code, 0);
  const std::string config = dir_.write("files.yaml",
                                        "model: {layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: 2048}\n"
                                        "train: {seq_len: 32, global_batch: 4, micro_batch: 2}\n"
                                        "optim: {schedule_steps: 8}\n"
                                        "run: {sample_lines: 0, dir: " +
                                            dir_.path("run") +
                                            "}\n"
                                            "checkpoint: {every: 4, keep: 10}\n"
                                            "device: {backend: cpu, threads: 1}\n"
                                            "data:\n"
                                            "  tokenizer: " +
                                            dir_.path("data/tokenizer.json") +
                                            "\n"
                                            "  sources:\n"
                                            "    - {name: stories, path: " +
                                            dir_.path("data/stories.jsonl") + "}\n");
  ASSERT_EQ(run_binary({"train", "--config", config, "train.steps=4"}).exit_code, 0);
  ASSERT_EQ(run_binary({"train", "--config", config, "train.steps=8"}).exit_code, 0);
  std::ofstream(dir_.path("data/stories.jsonl"), std::ios::app) << R"({"text": "one more"})"
                                                                << "\n";
  const RunResult wrong = run_binary({"train", "--config", config, "train.steps=8", "checkpoint.resume_from=4"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("stories.jsonl (source stories) changed since the data position was saved"), std::string::npos) << wrong.err;
  EXPECT_EQ(metrics("run").size(), 8u);
  EXPECT_TRUE(fs::exists(step("run", 8)));
}

TEST_F(Resume, AForkThatHasNothingToTrainIsRefused) {
  train_in_parts("run", {}, {4, 8});
  for (const char* steps : {"train.steps=4", "train.steps=8"}) {
    const RunResult fork = train("fork", {"checkpoint.resume_from=" + step("run", 8), steps});
    EXPECT_EQ(fork.exit_code, 2);
    EXPECT_NE(fork.err.find("is a checkpoint of step 8"), std::string::npos) << fork.err;
    EXPECT_FALSE(fs::exists(dir_.path("fork")));
  }
}

TEST_F(Resume, RetentionAndCopiesOfTheWeights) {
  train_in_parts("run", {"checkpoint.every=2", "checkpoint.keep=2", "checkpoint.keep_every=4", "checkpoint.weights_every_tokens=640"},
                 {2, 4, 6, 8, 10, 12});
  EXPECT_EQ(checkpoint_steps(dir_.path("run/checkpoints")), (std::vector<int64_t>{4, 8, 10, 12}));
  EXPECT_EQ(checkpoint_steps(dir_.path("run/weights")), (std::vector<int64_t>{5, 10})) << "640 tokens are five steps";
  const CheckpointIndex copy = read_index(dir_.path("run/weights/step_10"));
  EXPECT_EQ(copy.content, CheckpointContent::weights);
  for (const SavedTensor& t : copy.tensors) EXPECT_EQ(t.dtype, DType::bf16);
}

TEST_F(Resume, NothingIsSavedWhereNothingIsAskedFor) {
  ASSERT_EQ(train("run", {"checkpoint.every=0", "checkpoint.at_end=false"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(dir_.path("run/checkpoints")));
}

}  // namespace
}  // namespace hlat::test
