#include "cli/eval_folder.h"

#include <fstream>

#include "base/file.h"
#include "base/json_text.h"
#include "base/rng.h"
#include "checkpoint/find_checkpoint.h"
#include "data/reader/new_file.h"

namespace hlat {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kIdentityName = "evaluation.json";
constexpr double kEvalLease = 60;  // seconds

// Where a model runs does not decide its answers.
bool decides_answers(const std::string& override_word) {
  return !override_word.starts_with("device.") && !override_word.starts_with("parallel.") && !override_word.starts_with("eval.") &&
         !override_word.starts_with("train.micro_batch");
}

std::optional<Json> read_identity(const fs::path& folder) {
  std::ifstream in(folder / kIdentityName);
  if (!in) return {};
  return Json::parse(in, nullptr, false);
}

// A call that was refused after it had named its evaluation leaves nothing that another one could spoil.
bool has_results(const fs::path& folder) {
  std::error_code none;
  for (const fs::directory_entry& file : fs::directory_iterator(folder / kSamplesName, none))
    if (file.file_size() > 0) return true;
  return fs::exists(folder / kResultsName) && !load_results(folder).tasks.empty();
}

void check_same(const fs::path& folder, const Json& was, const Json& is) {
  std::string differences;
  for (const auto& [key, value] : is.items())
    if (!was.is_object() || was.value(key, Json()) != value)
      differences += fmt::format("\n  {} was {}, is {}", key, json_text(was.is_object() ? was.value(key, Json()) : was), json_text(value));
  if (!differences.empty()) fail<UsageError>("{} has another evaluation; give another --out, or remove it{}", folder.string(), differences);
}

}  // namespace

Json identity_of(const EvalArgs& args, const CheckpointIndex& index) {
  Json overrides = Json::array();
  for (const std::string& word : args.model.overrides)
    if (decides_answers(word)) overrides.push_back(word);
  return {{"run", index.run},
          {"step", index.step},
          {"checkpoint", fmt::format("{:016x}", hash_name(index.save()))},
          {"tokenizer", args.model.tokenizer},
          {"bos", args.bos},
          {"max_length", args.model.max_length},
          {"shots", args.shots ? Json(*args.shots) : Json()},
          {"fewshot_seed", args.fewshot_seed},
          {"seed", args.seed},
          {"overrides", overrides}};
}

fs::path default_folder(const fs::path& checkpoint) {
  const fs::path folder = fs::absolute(checkpoint).lexically_normal(), parent = folder.parent_path();
  const fs::path run = run_folder_of(parent);
  const std::string copy = parent.filename() == kWeightsName ? "weights_" : "";
  return (run.empty() ? parent : run) / "eval" / (copy + folder.filename().string());
}

EvalFolder::EvalFolder(fs::path path, const Json& identity)
    : path_(std::move(path)), by_(fmt::format("{:016x}", hash_name(json_text(identity)))) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) fail_storage(error.value(), "cannot make the folder " + path_.string());
  lease_ = std::make_unique<FolderLease>(path_, kEvalLease, FolderLease::Say{}, "--out");
  const std::optional<Json> was = read_identity(path_);
  if (was && has_results(path_)) {
    check_same(path_, *was, identity);
  } else {
    reader::NewFile fresh((path_ / kIdentityName).string());
    fresh.write(json_text(identity, 2) + "\n");
    fresh.publish((path_ / kIdentityName).string());
  }
  if (fs::exists(path_ / kResultsName)) results_ = load_results(path_);
}

void EvalFolder::save() { save_results(results_, path_ / kResultsName); }

std::optional<Results> EvalFolder::find(const fs::path& path, const Json& identity) {
  const std::optional<Json> was = read_identity(path);
  if (!was || *was != identity || !fs::exists(path / kResultsName)) return {};
  return load_results(path);
}

}  // namespace hlat
