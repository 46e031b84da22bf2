#include "runtime/eval_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/machine.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/find_checkpoint.h"
#include "checkpoint/hf/hf_import.h"
#include "checkpoint/hf/tokenizer_files.h"
#include "checkpoint/load_state.h"
#include "comm/host_exchange.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/saved.h"
#include "runtime/fit_check.h"
#include "runtime/from_rank_0.h"
#include "train/state_records.h"

namespace hlat {

namespace {

constexpr int64_t kTexts = 32;  // of full length, that the cache has room for where memory allows it

// Weights as the checkpoint has them: those of an imported model in their own type.
PrecisionKind precision_for(const CheckpointIndex& index, PrecisionKind saved, bool imported) {
  const bool narrow = std::all_of(index.tensors.begin(), index.tensors.end(), [](const SavedTensor& t) { return t.dtype == DType::bf16; });
  return imported && narrow ? PrecisionKind::bf16 : saved;
}

int64_t trained_length(const CheckpointIndex& index) {
  return config_from_json(nlohmann::ordered_json::parse(index.config)).config.train.seq_len;
}

}  // namespace

bool EvalModel::imported() const { return index_.find_record(kImportRecord) != nullptr; }

namespace {

// Weights alone are not FP8, so its rules do not bind.
void drop_fp8(Config& c) {
  if (c.train.precision == PrecisionKind::fp8) c.train.precision = PrecisionKind::mixed;
  if (c.train.precision == PrecisionKind::fp8_sr) c.train.precision = PrecisionKind::bf16_sr;
  c.precision.products.clear();
  c.precision.fp8_grads.clear();
  c.precision.weight_grads.clear();
}

}  // namespace

Config evaluation_config(const CheckpointIndex& index, const std::vector<std::string>& overrides, int64_t max_length) {
  const Config saved = config_from_json(nlohmann::ordered_json::parse(index.config)).config;
  Config base = saved;
  base.parallel = {};
  base.device = {};
  base.eval.cache_tokens = 0;
  base.train.micro_batch = 0;
  base.train.recompute = {};
  const bool imported = index.find_record(kImportRecord) != nullptr;
  base.train.precision = precision_for(index, saved.train.precision, imported);
  if (imported) base.precision = {};
  drop_fp8(base);
  if (max_length > 0) base.train.seq_len = max_length;
  // The batch follows from the mesh; data is not read.
  Config config = override_config(std::move(base), overrides, {"train.global_batch", "data.validate_rows"}).config;
  if (config.model != saved.model) throw UsageError("model.*: the model is the checkpoint's, and its keys cannot be changed");
  return config;
}

void EvalModel::configure(const EvalModelOptions& options, const Session& session) {
  config_ = evaluation_config(index_, options.overrides, options.max_length);
  backend_ = make_backend(config_.device, session.place());
  if (config_.train.micro_batch == 0) {
    const int64_t tokens = options.pass_tokens > 0 ? options.pass_tokens : backend_->device_id().empty() ? 2048 : 8192;
    config_.train.micro_batch = std::max<int64_t>(1, tokens / config_.train.seq_len);
  }
  const int64_t ranks = session.world().size(), replica = config_.parallel.tp * config_.parallel.pp;
  config_.train.global_batch = config_.train.micro_batch * std::max<int64_t>(1, ranks / replica);
  config_ = with_ranks(config_, ranks);
}

void EvalModel::check_tokenizer(bool given, bool leads, const std::function<void(const std::string&)>& say) const {
  if (index_.find_record("data") == nullptr) return;
  if (saved_position(index_).identity.tokenizer == tokenizer_->get().fingerprint()) return;
  const std::string words =
      fmt::format("the tokenizer {} is not the one that {} was trained with: its content differs", tokenizer_->name(), folder_.string());
  if (!given) throw UsageError(words + "; --tokenizer names another file");
  if (leads) say("warning: " + words);
}

// Room for many texts where it fits, else for less, down to what scoring needs.
void EvalModel::choose_cache(Session& session) {
  const auto assemble = [&] { assembly_.emplace(config_, *backend_, session.world(), session.local_ranks(), ParamUse::weights, true); };
  if (config_.eval.cache_tokens > 0) return assemble();
  const int64_t least = config_.train.seq_len * (config_.train.micro_batch + 1);
  for (config_.eval.cache_tokens = std::max(least, kTexts * config_.train.seq_len);; config_.eval.cache_tokens /= 2) {
    config_.eval.cache_tokens = std::max(config_.eval.cache_tokens, least);
    assemble();
    const bool fits = assembly_->fit().fits(config_, assembly_->plan());
    const std::vector<int> all = all_gather_values(session.world(), static_cast<int>(fits));
    if (config_.eval.cache_tokens == least || std::all_of(all.begin(), all.end(), [](int ok) { return ok != 0; })) return;
  }
}

EvalModel::EvalModel(const EvalModelOptions& options, Session& session, const std::function<void(const std::string&)>& say) {
  Comm& world = session.world();
  folder_ = from_rank_0(world, [&] { return find_checkpoint(options.checkpoint, options.step).string(); });
  index_ = CheckpointIndex::parse(from_rank_0(world, [&] { return read_index(folder_).save(); }));
  configure(options, session);
  session.set_time_limit(static_cast<double>(config_.parallel.timeout_s));
  const int64_t trained = trained_length(index_), length = config_.train.seq_len;
  if (options.check_length) options.check_length(length);
  if (length > trained && session.rank() == 0)
    say(fmt::format("warning: texts of up to {} tokens, but the model was trained with {}: what it makes of longer ones is unsure", length,
                    trained));
  tokenizer_.emplace(config_, options.tokenizer, tokenizer_to_load(tokenizer_files_in(folder_ / kTokenizerFolder)), imported());
  check_tokenizer(!options.tokenizer.empty(), session.rank() == 0, say);
  choose_cache(session);
  assembly_->connect();
  check_fit(config_, *assembly_, world, session.host());
  placed_ = &assembly_->build();
  passes_.emplace(placed_->executor(), kv_limits(config_));
  const double begin = now_s();
  CheckpointReader reader(folder_, index_);
  const int threads = config_.device.threads > 0 ? static_cast<int>(config_.device.threads) : session.threads();
  const LoadResult loaded =
      load_state(reader, placed_->executor().params(), placed_->mesh(), placed_->device(), LoadWhat::weights, threads);
  model_.emplace(*passes_);
  if (session.rank() != 0) return;
  for (const std::string& line : loaded.conversions) say("loaded " + line);
  say(fmt::format("{} of {}, read in {}", format_count(static_cast<double>(plan().parameters)) + " parameters", folder_.string(),
                  format_duration(now_s() - begin)));
}

}  // namespace hlat
