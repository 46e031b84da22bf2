#include "runtime/start_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>

#include "base/machine.h"
#include "runtime/job_processes.h"
#include "runtime/session.h"

namespace hlat {

namespace {

constexpr std::chrono::milliseconds kLook{250};
constexpr double kRollCall = 3;  // seconds that a roll call waits for answers
constexpr double kTurn = 4;      // a rank speaks this much later than the one before it, which then has ended the job
constexpr int kTurns = 3;

const char* variable(const char* name) { return std::getenv(name); }

}  // namespace

StartWatch::StartWatch(const Launch& launch, double limit_s, TooLong too_long, FlightRecorder* flight)
    : launch_(launch),
      too_long_(std::move(too_long)),
      flight_(flight),
      limit_s_(limit_s),
      since_(now_s()),
      phases_{"start"},
      thread_([this] { run(); }) {}

StartWatch::~StartWatch() {
  finish();
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

void StartWatch::set_limit(double limit_s) {
  const std::lock_guard lock(mutex_);
  limit_s_ = limit_s;
}

void StartWatch::begin(const std::string& phase) {
  if (flight_ != nullptr) flight_->phase(FlightPhase::start, phase);
  {
    const std::lock_guard lock(mutex_);
    phases_.push_back(phase);
    since_ = now_s();
  }
  if (begun_) begun_(phase);
}

std::string StartWatch::phase() const {
  const std::lock_guard lock(mutex_);
  return finished_ ? "" : phases_.back();
}

void StartWatch::use(Session& session) {
  const std::lock_guard lock(mutex_);
  session_ = &session;
}

void StartWatch::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  wake_.notify_all();
}

void StartWatch::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLook, [&] { return finished_; })) {
    const int number = static_cast<int>(phases_.size()) - 1;
    if (session_ != nullptr) session_->answer_roll_call(number);
    if (now_s() - since_ < limit_s_ + kTurn * std::min(launch_.rank, kTurns)) continue;
    const Overdue overdue{.phases = phases_, .limit_s = limit_s_, .session = session_};
    lock.unlock();
    const std::string words = describe(overdue);
    lock.lock();
    if (finished_ || phases_.size() != overdue.phases.size()) continue;  // it has ended while the others were asked
    lock.unlock();
    too_long_(words);
    lock.lock();
    since_ = now_s();
  }
}

std::string StartWatch::describe(const Overdue& overdue) const {
  std::string text =
      fmt::format("start-up: {} has not ended within {:g} s (parallel.start_timeout_s)", overdue.phases.back(), overdue.limit_s);
  if (launch_.ranks == 1) return text;
  const auto found = job_processes(variable);
  const std::vector<int> here = overdue.session != nullptr ? overdue.session->ranks_on_host() : expected_here(launch_, variable, found);
  const Absent absent = absent_ranks(found, here);
  const std::string silent = overdue.session != nullptr ? roll_call(overdue) : "";
  if (!silent.empty()) text += "; " + silent;
  if (!absent.words.empty()) text += fmt::format("; on this host {}", absent.words);
  if (silent.empty() && absent.words.empty() && static_cast<int>(here.size()) < launch_.ranks)
    text += fmt::format("; the ranks of this host ({}) are running: look at the other hosts", fmt::join(here, ", "));
  return text;
}

// In a thread of its own: a send to a rank that cannot be reached may block.
std::string StartWatch::roll_call(const Overdue& overdue) const {
  Session* session = overdue.session;
  const int number = static_cast<int>(overdue.phases.size()) - 1;
  std::packaged_task<std::vector<int>()> task([session, number] { return session->call_roll(number, kRollCall); });
  auto answers = task.get_future();
  std::thread(std::move(task)).detach();
  if (answers.wait_for(std::chrono::duration<double>(kRollCall + 2)) != std::future_status::ready) return "its peers cannot be asked";
  std::vector<int> silent;
  std::string behind;
  const std::vector<int> phases = answers.get();
  for (size_t r = 0; r < phases.size(); ++r) {
    if (static_cast<int>(r) == launch_.rank) continue;
    if (phases[r] < 0) silent.push_back(static_cast<int>(r));
    if (0 <= phases[r] && phases[r] < number)
      behind += fmt::format("{}rank {} is still at: {}", behind.empty() ? "" : ", ", r, overdue.phases[static_cast<size_t>(phases[r])]);
  }
  std::string text;
  if (!silent.empty())
    text = fmt::format("rank{} {} do{} not answer", silent.size() > 1 ? "s" : "", fmt::join(silent, ", "), silent.size() > 1 ? "" : "es");
  return text + (text.empty() || behind.empty() ? "" : ", ") + behind;
}

}  // namespace hlat
