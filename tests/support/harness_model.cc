#include "support/harness_model.h"

#include "checkpoint/hf/hf_import.h"
#include "support/formula_llama.h"
#include "support/harness_fixture.h"

namespace hlat::test {

namespace {

namespace fs = std::filesystem;

// A model of weights by formula has its config.json in the fixture; another one is a folder of the shared data.
void write_folder(const std::string& name, const nlohmann::json& fixture, const TempDir& dir) {
  if (fixture.contains("config.json")) {
    fs::create_directory(dir.path("hf"));
    dir.write("hf/config.json", fixture["config.json"].dump());
    write_formula_weights(dir.path("hf"));
    fs::copy_file(shared_data() / "tokenizers" / name / "tokenizer.json", dir.path("hf/tokenizer.json"));
  } else {
    fs::copy(shared_data() / "weights" / (name + "_hf"), dir.path("hf"));
    fs::permissions(dir.path("hf"), fs::perms::owner_all);
  }
  dir.write("hf/tokenizer_config.json", fixture["tokenizer_config.json"].dump());
}

}  // namespace

HarnessModel::HarnessModel(const std::string& name) : fixture_(harness_fixture("answers_" + name + ".json")), session_({}, 60) {
  write_folder(name, fixture_, dir_);
  const ImportResult imported = import_hf(dir_.path("hf"), dir_.path("imported"), {.hlat = "test"});
  opened_.emplace(EvalModelOptions{.checkpoint = imported.checkpoint.string(), .overrides = {"device.backend=cpu"}}, session_,
                  [](const std::string&) {});
}

EncodingRules HarnessModel::rules(std::optional<bool> bos) const {
  const RunTokenizer& tokenizer = opened_->tokenizer();
  return {.bos = bos.value_or(tokenizer.adds_bos()),
          .begin = tokenizer.bos(),
          .end = tokenizer.eos(),
          .max_length = opened_->config().train.seq_len};
}

TextModel HarnessModel::texts(std::optional<bool> bos) {
  return {opened_->model(), opened_->tokenizer().get(), rules(bos), session_.world()};
}

}  // namespace hlat::test
