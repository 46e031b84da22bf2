#include "selfcheck/self_check.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/failure_word.h"
#include "base/file.h"
#include "base/format.h"
#include "base/machine.h"
#include "config/nearest.h"
#include "config/precision_row.h"
#include "model/llama.h"
#include "runtime/existing_folder.h"
#include "runtime/from_rank_0.h"
#include "runtime/start_point.h"
#include "selfcheck/data_check.h"
#include "selfcheck/gradient_check.h"
#include "selfcheck/resume_check.h"
#include "selfcheck/shrunk.h"
#include "selfcheck/start_checks.h"
#include "selfcheck/step_checks.h"

namespace hlat {

namespace {

constexpr int64_t kSteps = 3;  // before the save

// A folder where checkpoints go, for the time of the check.
class CheckFolder {
 public:
  CheckFolder(const Config& config, Comm& world) : world_(world) {
    path_ = from_rank_0(world, [&] {
      std::string name = (existing_folder(checkpoint_dir(config)) / ".hlat_check_XXXXXX").string();
      if (mkdtemp(name.data()) == nullptr) fail_storage(errno, "cannot make the folder " + name);
      return name;
    });
  }
  ~CheckFolder() {
    std::error_code ignored;
    if (world_.rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  CheckFolder(const CheckFolder&) = delete;
  CheckFolder& operator=(const CheckFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  Comm& world_;
  std::string path_;
};

std::string model_words(const Config& given, const Config& c) {
  const ModelConfig& m = c.model;
  const std::string shape =
      fmt::format("{} layers, {} wide, {} heads of {}, {} kv, ffn {}, vocab {}, {} parameters; {} sequences of {} tokens, {}", m.layers,
                  m.hidden, m.heads, m.head_dim(), m.kv(), m.ffn, m.vocab, format_count(static_cast<double>(parameter_count(m))),
                  c.train.global_batch, c.train.seq_len, precision_words(c));
  const std::string mesh = fmt::format("tp {}, pp {}, dp {}", c.parallel.tp, c.parallel.pp, c.parallel.dp);
  return is_small(given) ? fmt::format("the model itself ({}): {}", mesh, shape) : fmt::format("a shrunk copy ({}): {}", mesh, shape);
}

// Runs checks one after the other and keeps what they came to.
class Checks {
 public:
  Checks(const std::set<std::string>& only, const std::function<void(const char*)>& begins) : only_(only), begins_(begins) {}

  bool wants(std::initializer_list<const char*> names) const {
    return only_.empty() || std::any_of(names.begin(), names.end(), [&](const char* n) { return only_.contains(n); });
  }
  void add(const char* name, const std::function<ModelVerdict()>& check) {
    if (!wants({name})) return;
    if (begins_) begins_(name);
    const double begin = now_s();
    ModelVerdict verdict;
    try {
      verdict = check();
    } catch (const FailedStep& e) {  // numbers that all ranks have
      verdict = ModelVerdict::failed(e.what());
    }
    checks_.push_back({.name = name, .verdict = std::move(verdict), .seconds = now_s() - begin});
  }
  std::vector<ModelCheck> take() { return std::move(checks_); }

 private:
  const std::set<std::string>& only_;
  const std::function<void(const char*)>& begins_;
  std::vector<ModelCheck> checks_;
};

// Checks that share the steps of one model. A step that fails, with numbers that all ranks have, fails all that follow.
void check_steps(const SelfCheckRun& run, CheckModel& model, Checks& checks) {
  if (!checks.wants({"loss", "gradients", "updates", "replicas", "shared", "resume", "recompute"})) return;
  FirstStep first;
  OneRankStep one;
  std::string broken;
  const auto take = [&](const std::function<void()>& steps) {
    try {
      if (broken.empty()) steps();
    } catch (const FailedStep& e) {
      broken = e.what();
    }
  };
  const auto add = [&](const char* name, const std::function<ModelVerdict()>& check) {
    checks.add(name, [&] { return broken.empty() ? check() : ModelVerdict::failed(broken); });
  };
  model.start();
  take([&] { first = take_first_step(model); });
  add("loss", [&] { return check_first_loss(run, first.result.loss); });
  add("gradients", [&] {
    one = one_rank_step(run);
    return check_gradients(run, model.params().precision(), first.gradients, first.result.loss, one);
  });
  if (one.replicas.empty() && run.config.model.tied && checks.wants({"shared"})) take([&] { one = one_rank_step(run); });
  add("updates", [&] { return check_updates(run, model, first); });
  if (checks.wants({"replicas", "shared", "resume"}))
    take([&] {
      for (int64_t step = 2; step <= kSteps; ++step) model.step(step);
    });
  add("replicas", [&] { return check_replicas(run, model, kSteps); });
  add("shared", [&] { return check_shared(run, model, first, one.tied_words); });
  add("resume", [&] { return check_resume(run, model, kSteps); });
  add("recompute", [&] { return check_recompute(run, first); });
}

}  // namespace

std::set<std::string> parse_model_checks(const std::string& list) {
  return parse_names("--only", list, "check of the model", kModelChecks);
}

SelfCheckReport run_self_checks(const Config& given, const SelfCheckPlace& place, const std::set<std::string>& only) {
  const double begin = now_s();
  const CheckFolder folder(given, place.world);
  Config config = shrunk(given, !place.backend.device_id().empty());
  config.run.dir = folder.path();
  const SelfCheckRun run{.given = given,
                         .config = config,
                         .backend = place.backend,
                         .world = place.world,
                         .local_ranks = place.local_ranks,
                         .threads = place.threads,
                         .on_host = place.on_host,
                         .after_load = place.after_load};
  Checks checks(only, place.begins);
  CheckModel model(config, place.backend, place.world, place.local_ranks, true);
  model.start();
  checks.add("init", [&] { return check_init(run, model); });
  if (model.faults() != nullptr) model.faults()->at_step(1);  // what is wrong from the first step on is wrong now
  checks.add("rope", [&] { return check_rope(run, model); });
  checks.add("leak", [&] { return check_leak(run, model); });
  check_steps(run, model, checks);
  checks.add("data", [&] { return check_data(run, model); });
  place.world.barrier();
  SelfCheckReport report{.model = model_words(given, config), .checks = checks.take()};
  report.seconds = now_s() - begin;
  return report;
}

}  // namespace hlat
