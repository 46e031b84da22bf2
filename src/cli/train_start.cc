#include "cli/train_start.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "checkpoint/staging.h"
#include "cli/plant_faults.h"
#include "cli/print.h"
#include "cli/version.h"
#include "comm/host_exchange.h"
#include "config/print.h"
#include "data/train_batches.h"
#include "runtime/load_start.h"
#include "train/fp8_record.h"
#include "train/state_records.h"

namespace hlat {

void check_data(const StartPoint& from, const Dataset* data) {
  if (!from.resumes() || data == nullptr) return;
  std::optional<DataState> position;
  try {
    position = saved_position(from.index);
  } catch (const DamagedCheckpoint&) {
    return;  // found again when it is loaded, where the one before it is taken
  }
  const TrainData checked(data->identity(), data->train(), std::move(position));
}

namespace {

namespace fs = std::filesystem;

// A checkpoint.dir outside of the run folder could be given to two runs at once, so it has a lease of its own. None where it is inside, or
// cannot be made: that is a failed save, which ends no run.
std::unique_ptr<FolderLease> lease_checkpoints(const Config& config, const FolderLease::Say& say) {
  const fs::path dir = checkpoint_dir(config);
  std::error_code error;
  const fs::path within = fs::weakly_canonical(dir, error).lexically_relative(fs::weakly_canonical(config.run.dir, error));
  if (!error && (within.empty() || *within.begin() != "..")) return nullptr;
  if (!saves_anything(config.checkpoint) && !fs::exists(dir, error)) return nullptr;
  fs::create_directories(dir, error);
  return error ? nullptr : std::make_unique<FolderLease>(dir, static_cast<double>(config.run.lease_s), say);
}

}  // namespace

RunFolder* open_folder(const Config& given, const Config& config, const StartPoint& from, bool fresh, const Session& session,
                       RunGuard& guard) try {
  RunFolder* folder = nullptr;
  if (session.rank() == 0) {
    const auto say = [](const std::string& text) { print_err(fmt::format("hlat: {}\n", text)); };
    const bool goes_on = from.kind == StartKind::continued || from.kind == StartKind::rewind;
    FolderStart start{.goes_on = goes_on};
    std::unique_ptr<FolderLease> checkpoints = lease_checkpoints(config, say);
    if (fresh) checkpoints.reset();       // its file would be moved with the folder
    const fs::path run = config.run.dir;  // has those of a run that had another checkpoint.dir
    if (fresh)
      start.set_aside = {checkpoint_dir(config), weights_dir(config), run / "checkpoints", run / "weights", run / "faults.jsonl"};
    else
      start.check = [&] { check_unchanged(config, from); };
    folder = &guard.open(std::make_unique<RunFolder>(config.run.dir, run_record(given, config), config.run.tensorboard,
                                                     static_cast<double>(config.run.lease_s), say, start),
                         !goes_on);
    guard.hold(fresh ? lease_checkpoints(config, say) : std::move(checkpoints));
  }
  const uint64_t token = broadcast_value(session.world(), folder != nullptr ? folder->lease().token() : 0, 0);
  if (folder == nullptr) guard.join(token);
  return folder;
} catch (const FolderHeld& e) {
  // The launcher has tried this folder before: a rank of that time, on a host out of reach, will give it back.
  if (this_attempt() > 1) throw FaultError(e.what());
  throw;
}

TrainState start_run(StartPoint& from, const Config& config, PlacedModel& model, const Session& session, int threads, RunFolder* folder) {
  const auto say = [&](const std::string& text, bool warning) {
    if (folder == nullptr) return;
    if (warning) return folder->log().warn("{}", text);  // a terminal has it too
    folder->log().info("{}", text);
    print_err(text + "\n");
  };
  for (const std::string& line : check_start(config, from)) say("changed since it was saved: " + line, false);
  TrainState state = load_start(from, config, model, session.world(), threads, say);
  if (folder == nullptr) return state;
  // In this order: whoever is killed in between must not take checkpoints of steps whose records are gone for the latest.
  for (const std::string& line : set_later_aside(from, config)) say(line, true);
  folder->go_on(state.step);
  return state;
}

std::unique_ptr<Saver> make_saver(const Config& config, size_t staging, const StartPoint& from, Backend& backend, const Session& session,
                                  RunGuard& guard, TrainSetup& setup) {
  if (!saves_anything(config.checkpoint)) return nullptr;
  Comm& world = session.world();
  std::unique_ptr<Comm> commit = world.size() > 1 ? world.split(0, world.rank(), "checkpoint") : nullptr;
  const Mesh& mesh = setup.model.mesh();
  const ParamStore& params = setup.model.executor().params();
  SaveOptions options{.staging_bytes = staging, .max_wait_s = longest_update_wait(config)};
  if (setup.faults != nullptr) options.before_write = [faults = setup.faults](uint64_t written) { faults->before_write(written); };
  auto saver = std::make_unique<Saver>(params, setup.model.device(), mesh.coord().dp, mesh.shape().dp, std::move(commit), options);
  setup.saves.emplace(SavesSetup{.saver = *saver,
                                 .checkpoints = checkpoint_dir(config),
                                 .weights = weights_dir(config),
                                 .run = from.run,
                                 .version = version(),
                                 .config = json_text(to_json(config)),
                                 .records = from.records,
                                 .owns_start = from.kind != StartKind::fork,
                                 .kernels = [&backend] { return backend.kernel_choices(); },
                                 .fp8 = [&executor = setup.model.executor()] { return own_fp8(executor); },
                                 .tell = [&guard](const SaveNews& news) { guard.tell_save(news); }});
  if (setup.faults != nullptr) setup.saves->ended = [faults = setup.faults](const SaveOutcome& outcome) { faults->saved(outcome); };
  return saver;
}

}  // namespace hlat
