#include "cli/run_guard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/exit_code.h"
#include "base/failure_word.h"
#include "base/machine.h"
#include "base/rng.h"
#include "checkpoint/staging.h"
#include "cli/print.h"
#include "cli/ranks.h"
#include "cli/version.h"
#include "config/print.h"

namespace hlat {

namespace {

constexpr double kDefaultStartTimeout = 3600;
// The watch of the start-up speaks first; a wait of its own ends a rank whose watch does not.
constexpr double kAfterWatch = 60;
constexpr std::chrono::seconds kAfterRank0{1};
constexpr std::chrono::seconds kEnding{5};
constexpr std::chrono::milliseconds kAgentLook{200};
constexpr double kAgentSilence = 60;  // seconds; an agent whose process is gone needs none

const char* variable(const char* name) { return std::getenv(name); }

// The ring that an agent of hlat launch reads; empty: nobody does.
std::filesystem::path flight_file(const Launch& launch) {
  const char* folder = variable(kFlightVariable);
  if (folder == nullptr || *folder == 0) return {};
  return flight_ring_file(folder, launch.rank);
}

double first_limit() {
  const char* text = variable("HLAT_START_TIMEOUT_S");
  if (text == nullptr || *text == 0) return kDefaultStartTimeout;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*end != 0 || !(value > 0)) fail<UsageError>("environment variable HLAT_START_TIMEOUT_S = {}: must be a number above 0", text);
  return value;
}

}  // namespace

RunGuard::RunGuard(const Launch& launch)
    : launch_(launch), flight_(flight_file(launch), {.rank = launch.rank, .ranks = launch.ranks, .host = host_name()}) {
  signals_.emplace([this](const EndSignals::Signal& signal) { answer(signal); });
  start_.emplace(
      launch, first_limit(), [this](const std::string& words) { start_took_too_long(words); }, &flight_);
  if (!flight_file(launch).empty()) agent_watch_ = std::jthread([this](const std::stop_token& stop) { watch_agent(stop); });
}

void RunGuard::configure(const Config& config) {
  config_ = config;
  start_->set_limit(static_cast<double>(config.parallel.start_timeout_s));
  const std::lock_guard lock(mutex_);
  journal_.emplace(JournalOrigin{
      .rank = launch_.rank, .ranks = launch_.ranks, .config = fmt::format("{:016x}", hash_name(to_yaml(config))), .version = version()});
}

void RunGuard::meet(Session& session) {
  session.set_time_limit(static_cast<double>(config_.parallel.start_timeout_s) + kAfterWatch);
  start_->use(session);
  session.world().record_to(flight_, hash_name("world"));
  const std::lock_guard lock(mutex_);
  session_ = &session;
}

void RunGuard::part() {
  start_->finish();
  const std::lock_guard lock(mutex_);
  session_ = nullptr;
}

RunFolder& RunGuard::open(std::unique_ptr<RunFolder> folder, bool anew) {
  const StartFacts facts{.seconds = now_s() - begun_, .reached = folder->past().reached, .progressed_at = folder->past().progressed_at};
  journal_->open(folder->dir(), folder->lease().token(), folder->shared_log(), anew, facts);
  const std::lock_guard lock(mutex_);
  folder_ = std::move(folder);
  return *folder_;
}

std::optional<LiveGoodput> RunGuard::ready(int64_t behind, int64_t total, double load_s) {
  const PastSteps& past = folder_->past();
  journal_->ready(
      behind, {.total = total, .seconds = now_s() - begun_, .load_s = load_s, .repeated = past.repeated, .repeated_s = past.repeated_s});
  const RunRecord record = read_run_record(folder_->dir(), true);
  const RunAccount so_far = account(record);
  if (so_far.goodput.restarts == 0 && !so_far.launched) return {};
  return LiveGoodput(so_far, record.until);
}

void RunGuard::hold(std::unique_ptr<FolderLease> lease) {
  const std::lock_guard lock(mutex_);
  more_ = std::move(lease);
}

void RunGuard::join(uint64_t token) { journal_->join(config_.run.dir, token); }

int RunGuard::end_signal() {
  if (!start_->phase().empty()) {
    start_->finish();
    const std::lock_guard lock(mutex_);
    if (session_ != nullptr) session_->set_time_limit(static_cast<double>(config_.parallel.timeout_s));
  }
  return signals_->asked();
}

void RunGuard::tell_save(const SaveNews& news) {
  saved_step_ = news.saved_step;
  if (news.kind == SaveNews::Kind::note) return folder_->log().info("{}", news.text);
  const bool failed = news.kind == SaveNews::Kind::failed;
  journal_->save(now_at(), news.text, failed, news.saved_step);
  if (failed) print_err(fmt::format("\nhlat: {}\n", news.text));
}

void RunGuard::note(const std::string& text) try {
  const std::lock_guard lock(mutex_);
  if (folder_ != nullptr) return folder_->log().info("{}", text);
  const std::filesystem::path log = std::filesystem::path(config_.run.dir) / "log.txt";
  if (std::filesystem::exists(log)) make_file_log(log)->info("{}{}", where(launch_), text);
} catch (const std::exception&) {
  // It is told on stderr too.
}
void RunGuard::tell_loss(const LossEvent& event) { journal_->note(kind_of(event), event.step, reason_of(event), fields_of(event)); }

// Whoever asked the run to end kills it when that takes too long, without a word; so the run ends itself before, with one.
void RunGuard::start_grace(int signal) {
  std::thread([this, signal] {
    std::this_thread::sleep_for(std::chrono::seconds(config_.checkpoint.grace_s));
    if (over_) return;
    const int64_t saved = saved_step_;
    end_now(
        fmt::format("{} came {} s ago (checkpoint.grace_s), and the run has not ended; {}", signal_name(signal), config_.checkpoint.grace_s,
                    saved > 0 ? fmt::format("its last checkpoint is that of step {}", saved) : "it has no checkpoint"),
        kEndedBySignal + signal, launch_.rank == 0);
  }).detach();
}

void RunGuard::ended(const std::string& reason, int exit_code) { ended(reason, exit_code, reason); }

void RunGuard::ended(const std::string& reason, int exit_code, const std::string& flight_reason) {
  over_ = true;
  flight_.ended(exit_code, flight_reason);
  if (journal_) journal_->end(now_at(), reason, exit_code);
  const std::lock_guard lock(mutex_);
  if (more_ != nullptr) more_->release();
  if (folder_ != nullptr) folder_->lease().release();
}

// A failure of all ranks is recorded by rank 0 alone, which then gives the folder back: the others find it so, unless it has none. A fault
// is told by whoever meets it first, who is nearest to the cause.
std::string RunGuard::failed(const std::exception& e, int exit_code) {
  const Absent gone = exit_code == kFault ? absent() : Absent{};
  const std::string more = gone.words.empty() ? "" : "; on this host " + gone.words;
  if (launch_.rank != 0 && exit_code != kFault) std::this_thread::sleep_for(kAfterRank0);
  ended(e.what() + more, exit_code, reason_of(e) + more);
  return more;
}

void RunGuard::leave_save_behind(const std::string& reason, int exit_code) {
  if (launch_.rank != 0) std::this_thread::sleep_for(kAfterRank0);
  end_now(reason, exit_code, launch_.rank == 0);
}

Absent RunGuard::absent() const {
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr || launch_.ranks == 1) return {};
  return absent_ranks(job_processes(variable), session_->ranks_on_host());
}

void RunGuard::answer(const EndSignals::Signal& signal) {
  const int64_t at = now_at();
  const bool launcher = signal.sender == getppid() && launch_.ranks > 1;
  const std::string from = signal.sender == 0 ? "" : fmt::format(" from process {}{}", signal.sender, launcher ? ", the launcher" : "");
  const std::string what = signal_name(signal.number) + from;
  const bool speaks = launch_.rank == 0 || !launcher;
  if (at == 0) {
    const std::string phase = start_->phase();
    end_now(fmt::format("{} during start-up{}", what, phase.empty() ? "" : ", " + phase), kEndedBySignal + signal.number, speaks);
  }
  if (!signal.first) end_now(fmt::format("{}, the second signal, at step {}", what, at), kEndedBySignal + signal.number, speaks);
  if (const Absent gone = absent(); launcher && !gone.ranks.empty()) {
    const auto living = job_processes(variable);
    if (living.empty() || living.begin()->first != launch_.rank) return;
    const std::string reason = fmt::format("{} on {}; {}", gone.words, host_name(), what);
    journal_->fault(at, reason, gone.ranks);
    journal_->end(at, reason, kFault);
    print_err(fmt::format("hlat: {}step {}: {}\n", where(launch_), at, reason));
    return;  // the step under way waits for a rank that is gone: the launcher's next signal ends this one
  }
  const bool saves = saves_anything(config_.checkpoint);
  if (saves) start_grace(signal.number);
  if (launch_.rank != 0) return;
  journal_->signal(at, what);
  print_err(
      fmt::format("\nhlat: {}: the run {}ends after step {}; a second signal ends it at once\n", what, saves ? "saves and " : "", at));
}

void RunGuard::watch_agent(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    wake.wait_for(lock, stop, kAgentLook, [] { return false; });
    if (flight_.agent_is_gone(kAgentSilence)) end_now("the agent of hlat launch on this host is gone", kFault, launch_.rank == 0);
  }
}

void RunGuard::start_took_too_long(const std::string& words) { end_now(words, kFault, true); }

void RunGuard::end_now(const std::string& reason, int exit_code, bool speaks) {
  // Whatever blocks below (a disk, a reader of stderr, MPI), the process ends.
  std::thread([exit_code] {
    std::this_thread::sleep_for(kEnding);
    std::_Exit(exit_code);
  }).detach();
  ended(reason, exit_code);
  if (speaks) print_err(fmt::format("\nhlat: {}{}\n", where(launch_), reason));
  Session* session = nullptr;
  {
    const std::lock_guard lock(mutex_);
    session = session_;
  }
  // Ends ranks that the launcher would leave alone, where MPI still can.
  if (session != nullptr && launch_.ranks > 1 && exit_code == kFault) session->abort(exit_code);
  std::_Exit(exit_code);
}

}  // namespace hlat
