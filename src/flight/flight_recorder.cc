#include "flight/flight_recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>

#include "base/error.h"

namespace hlat {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

template <int kBytes>
void put(FlightText<kBytes>& to, std::string_view text) {
  uint32_t before = to.sequence.load();
  if (before % 2 != 0 || !to.sequence.compare_exchange_strong(before, before + 1)) return;  // another thread writes: its words are as good
  const size_t size = std::min<size_t>(text.size(), kBytes - 1);
  for (size_t i = 0; i < size; ++i) to.text[i].store(text[i], kRelaxed);
  to.text[size].store(0, kRelaxed);
  to.sequence.store(before + 2, std::memory_order_release);
}

void* map_ring(const std::filesystem::path& file) {
  constexpr size_t kBytes = sizeof(FlightRing);
  if (file.empty()) return mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  // Not bad input, whatever the reason: the agent makes the folder, and another start finds it made.
  if (fd < 0) fail<FaultError>("flight recorder {}: {}", file.string(), std::strerror(errno));
  // Taken now, not when it is written to: a full memory is an error here and not a signal there.
  const int error = posix_fallocate(fd, 0, kBytes);
  void* at = error == 0 ? mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  close(fd);
  if (error != 0) fail<FaultError>("flight recorder {}: {}", file.string(), std::strerror(error));
  return at;
}

}  // namespace

uint64_t FlightRecorder::now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

FlightRecorder::FlightRecorder(const std::filesystem::path& file, const FlightOrigin& origin) {
  void* at = map_ring(file);
  if (at == MAP_FAILED) fail<FaultError>("flight recorder: no memory for {} bytes", sizeof(FlightRing));
  ring_ = new (at) FlightRing;  // value: the mapping is zero, and every word may be
  ring_->version = kFlightVersion;
  ring_->rank = origin.rank;
  ring_->ranks = origin.ranks;
  ring_->pid = getpid();
  ring_->started_ns = now_ns();
  put(ring_->host, origin.host);
  phase(FlightPhase::start, "starting");
  ring_->magic.store(kFlightMagic, std::memory_order_release);
}

FlightRecorder::~FlightRecorder() { munmap(ring_, sizeof(FlightRing)); }

void FlightRecorder::progress(uint64_t now) {
  ring_->progress_ns.store(now, kRelaxed);
  ring_->progress.fetch_add(1, kRelaxed);
}

void FlightRecorder::event(uint64_t now, FlightKind kind, uint8_t what, uint64_t number, int peer, int group) {
  const uint64_t place = ring_->events_written.fetch_add(1, kRelaxed);
  ring_->events[place % kFlightEvents] = {
      .time_ns = now, .number = number, .peer = peer, .kind = kind, .what = what, .group = static_cast<int8_t>(group)};
  progress(now);
}

void FlightRecorder::mesh(int tp, int pp, int dp) {
  ring_->tp = tp;
  ring_->pp = pp;
  ring_->dp = dp;
}

void FlightRecorder::phase(FlightPhase kind, std::string_view words) {
  const uint64_t now = now_ns();
  if (const uint64_t since = ring_->phase_ns; since != 0) {
    FlightWord<double>& longest = ring_->longest[ring_->phase_kind];
    longest = std::max(longest.load(), static_cast<double>(now - since) * 1e-9);
  }
  ring_->phase_kind = static_cast<uint8_t>(kind);
  ring_->phase_ns = now;
  put(ring_->phase, words);
  event(now, FlightKind::phase, static_cast<uint8_t>(kind), 0, -1, -1);
}

void FlightRecorder::begin_step(int64_t step) {
  ring_->step.store(step, kRelaxed);
  event(now_ns(), FlightKind::step, 0, static_cast<uint64_t>(step), -1, -1);
}

void FlightRecorder::end_step(int64_t step, double seconds, double compute_s) {
  const int64_t number = ring_->steps_done.load(kRelaxed);
  FlightStep& place = ring_->steps[static_cast<size_t>(number) % kFlightSteps];
  place.seconds.store(seconds, kRelaxed);
  place.compute_s.store(compute_s, kRelaxed);
  place.step.store(step, kRelaxed);
  ring_->steps_done.store(number + 1, std::memory_order_release);
  action(FlightAction::none);
}

void FlightRecorder::action(FlightAction action, int micro, int chunk) {
  ring_->action.store(static_cast<uint8_t>(action), kRelaxed);
  ring_->micro.store(micro, kRelaxed);
  ring_->chunk.store(chunk, kRelaxed);
  event(now_ns(), FlightKind::action, static_cast<uint8_t>(action), static_cast<uint64_t>(std::max(micro, 0)), chunk, -1);
}

void FlightRecorder::op(uint8_t kind) {
  ring_->op.store(kind, kRelaxed);
  event(now_ns(), FlightKind::op, kind, 0, -1, -1);
}

void FlightRecorder::saving(uint64_t bytes, int64_t saved_step) {
  ring_->saved_step.store(saved_step, kRelaxed);
  if (ring_->saved_bytes.exchange(bytes, kRelaxed) != bytes) beat();
}

void FlightRecorder::ended(int exit_code, std::string_view reason) {
  uint8_t before = 0;
  if (!ring_->ended.compare_exchange_strong(before, 1)) return;
  ring_->exit_code = exit_code;
  put(ring_->reason, reason);
  ring_->ended.store(2, std::memory_order_release);
}

int FlightRecorder::add_group(std::string_view name, uint64_t id, int rank, int size, bool on_stream) {
  for (int i = 0; i < kFlightGroups; ++i) {
    FlightGroup& g = ring_->groups[static_cast<size_t>(i)];
    uint64_t free = 0;
    if (!g.id.compare_exchange_strong(free, id)) continue;
    put(g.name, name);
    g.rank = rank;
    g.size = size;
    g.on_stream = on_stream ? 1 : 0;
    g.peer = -1;
    return i;
  }
  return -1;
}

void FlightRecorder::enter(int group, uint8_t kind, int peer) {
  if (!in_range(group)) return;
  FlightGroup& g = ring_->groups[static_cast<size_t>(group)];
  const uint64_t now = now_ns();
  const uint64_t number = g.entered.load(kRelaxed) + (peer < 0 ? 1 : 0);
  g.kind.store(kind, kRelaxed);
  g.peer.store(peer, kRelaxed);
  g.since_ns.store(now, kRelaxed);
  g.entered.store(number, kRelaxed);
  g.open.store(1, std::memory_order_release);
  event(now, FlightKind::enter, kind, number, peer, group);
}

void FlightRecorder::waits_for(int group, int peer) {
  if (in_range(group)) ring_->groups[static_cast<size_t>(group)].peer.store(peer, kRelaxed);
}

void FlightRecorder::queued(int group, bool on) {
  if (in_range(group)) ring_->groups[static_cast<size_t>(group)].queued.store(on ? 1 : 0, kRelaxed);
}

void FlightRecorder::awaited(int group, bool on) {
  if (in_range(group)) ring_->groups[static_cast<size_t>(group)].awaited.store(on ? 1 : 0, kRelaxed);
}

void FlightRecorder::leave(int group) {
  if (!in_range(group)) return;
  FlightGroup& g = ring_->groups[static_cast<size_t>(group)];
  g.open.store(0, std::memory_order_release);
  g.left.store(g.entered.load(kRelaxed), kRelaxed);
  event(now_ns(), FlightKind::leave, g.kind.load(kRelaxed), g.entered.load(kRelaxed), g.peer.load(kRelaxed), group);
}

bool FlightRecorder::agent_is_gone(double silent_s) const {
  const int pid = ring_->agent_pid;
  if (pid == 0) return false;
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  const uint64_t beat = ring_->agent_beat_ns, now = now_ns();  // in this order: the agent may beat in between
  return now > beat && static_cast<double>(now - beat) * 1e-9 > silent_s;
}

std::filesystem::path flight_ring_file(const std::filesystem::path& folder, int rank) { return folder / fmt::format("rank_{}.ring", rank); }

std::string_view name_of(FlightPhase phase) {
  constexpr std::array<std::string_view, kFlightPhases> names = {"start-up", "training", "validation", "evaluation", "last save", "end"};
  return names[static_cast<size_t>(phase)];
}

std::string_view name_of(FlightAction action) {
  constexpr std::array<std::string_view, kFlightActions> names = {
      "between steps", "data",   "forward",          "backward",           "gradient sums",
      "norms",         "update", "reading the loss", "comparing replicas", "waiting for a save"};
  return names[static_cast<size_t>(action)];
}

}  // namespace hlat
