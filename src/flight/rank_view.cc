#include "flight/rank_view.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "flight/flight_recorder.h"

namespace hlat {

namespace {

template <int kBytes>
std::string text_of(const FlightText<kBytes>& from) {
  std::string text;
  for (int tries = 0; tries < 100; ++tries) {
    const uint32_t before = from.sequence.load(std::memory_order_acquire);
    text.clear();
    for (const FlightWord<char>& c : from.text) {
      const char value = c.load(std::memory_order_relaxed);
      if (value == 0) break;
      text += value;
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && from.sequence.load() == before) return text;
  }
  return text;  // it was cut while it changed, or its writer died in between: better than nothing
}

double seconds_since(uint64_t then, uint64_t now) { return then == 0 || now < then ? 0 : static_cast<double>(now - then) * 1e-9; }

char process_state(int pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : 'X';
}

uint64_t io_of(int pid) {
  std::ifstream in(fmt::format("/proc/{}/io", pid));
  uint64_t bytes = 0, value = 0;
  for (std::string name; in >> name >> value;)
    if (name == "rchar:" || name == "wchar:") bytes += value;
  return bytes;
}

GroupView view_of(const FlightGroup& g, uint64_t now) {
  return {.id = g.id,
          .name = text_of(g.name),
          .rank = g.rank,
          .size = g.size,
          .entered = g.entered,
          .left = g.left,
          .open = g.open != 0,
          .on_stream = g.on_stream != 0,
          .queued = g.queued != 0,
          .awaited = g.awaited != 0,
          .kind = g.kind,
          .peer = g.peer,
          .since_s = seconds_since(g.since_ns, now)};
}

}  // namespace

std::optional<RingReader> RingReader::open(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat status {};
  const bool whole = fstat(fd, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(FlightRing));
  void* at = whole ? mmap(nullptr, sizeof(FlightRing), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  close(fd);
  if (at == MAP_FAILED) return std::nullopt;
  RingReader reader(static_cast<FlightRing*>(at));
  if (reader.ring_->magic.load(std::memory_order_acquire) != kFlightMagic || reader.ring_->version != kFlightVersion) return std::nullopt;
  return reader;
}

RingReader::RingReader(RingReader&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)) {}

RingReader& RingReader::operator=(RingReader&& other) noexcept {
  std::swap(ring_, other.ring_);
  return *this;
}

RingReader::~RingReader() {
  if (ring_ != nullptr) munmap(ring_, sizeof(FlightRing));
}

void RingReader::beat(int agent_pid) const {
  ring_->agent_beat_ns = FlightRecorder::now_ns();
  ring_->agent_pid = agent_pid;
}

RankView RingReader::view(int64_t steps_from) const {
  const FlightRing& r = *ring_;
  RankView v;
  v.rank = r.rank;
  v.ranks = r.ranks;
  v.pid = r.pid;
  v.host = text_of(r.host);
  v.tp = r.tp;
  v.pp = r.pp;
  v.dp = r.dp;
  v.process = process_state(v.pid);
  v.io_bytes = io_of(v.pid);
  v.ended = r.ended.load(std::memory_order_acquire) == 2;
  v.exit_code = r.exit_code;
  if (v.ended) v.reason = text_of(r.reason);
  v.progress = r.progress;
  const uint64_t progress_ns = r.progress_ns;
  v.step = r.step;
  v.saved_step = r.saved_step;
  v.action = static_cast<FlightAction>(std::min<int>(r.action, kFlightActions - 1));
  v.op = r.op;
  v.micro = r.micro;
  v.chunk = r.chunk;
  v.phase = static_cast<FlightPhase>(std::min<int>(r.phase_kind, kFlightPhases - 1));
  v.phase_words = text_of(r.phase);
  for (const FlightWord<double>& longest : r.longest) v.longest.push_back(longest);
  v.steps_done = r.steps_done.load(std::memory_order_acquire);
  for (int64_t n = std::max({steps_from, v.steps_done - kFlightSteps + 1, int64_t{0}}); n < v.steps_done; ++n) {
    const FlightStep& s = r.steps[static_cast<size_t>(n) % kFlightSteps];
    v.steps.push_back({.step = s.step, .seconds = s.seconds, .compute_s = s.compute_s});
  }
  const uint64_t now = FlightRecorder::now_ns();
  v.age_s = seconds_since(r.started_ns, now);
  v.silent_s = seconds_since(progress_ns, now);
  v.phase_s = seconds_since(r.phase_ns, now);
  for (const FlightGroup& g : r.groups)
    if (g.id != 0) v.groups.push_back(view_of(g, now));
  return v;
}

std::vector<FlightEvent> RingReader::events() const {
  const uint64_t end = ring_->events_written;
  const uint64_t begin = end > kFlightEvents ? end - kFlightEvents : 0;
  std::vector<FlightEvent> out;
  for (uint64_t n = begin; n < end; ++n) out.push_back(ring_->events[n % kFlightEvents]);
  const uint64_t later = ring_->events_written;
  const uint64_t lost = later > begin + kFlightEvents ? later - begin - kFlightEvents : 0;
  out.erase(out.begin(), out.begin() + static_cast<int64_t>(std::min<uint64_t>(lost, out.size())));
  // A place that is taken and not written yet has the event of a round before.
  while (out.size() > 1 && out.back().time_ns < out.front().time_ns) out.pop_back();
  return out;
}

nlohmann::ordered_json to_json(const RankView& v) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array(), groups = nlohmann::ordered_json::array();
  for (const StepTime& s : v.steps) steps.push_back({s.step, s.seconds, s.compute_s});
  for (const GroupView& g : v.groups)
    groups.push_back({{"id", g.id},
                      {"name", g.name},
                      {"rank", g.rank},
                      {"size", g.size},
                      {"entered", g.entered},
                      {"left", g.left},
                      {"open", g.open},
                      {"on_stream", g.on_stream},
                      {"queued", g.queued},
                      {"awaited", g.awaited},
                      {"kind", g.kind},
                      {"peer", g.peer},
                      {"since_s", g.since_s}});
  return {{"rank", v.rank},
          {"ranks", v.ranks},
          {"pid", v.pid},
          {"host", v.host},
          {"mesh", {v.tp, v.pp, v.dp}},
          {"process", std::string(1, v.process)},
          {"age_s", v.age_s},
          {"io_bytes", v.io_bytes},
          {"progress", v.progress},
          {"silent_s", v.silent_s},
          {"step", v.step},
          {"steps_done", v.steps_done},
          {"saved_step", v.saved_step},
          {"action", static_cast<int>(v.action)},
          {"op", v.op},
          {"micro", v.micro},
          {"chunk", v.chunk},
          {"phase", static_cast<int>(v.phase)},
          {"phase_words", v.phase_words},
          {"phase_s", v.phase_s},
          {"longest", v.longest},
          {"steps", std::move(steps)},
          {"groups", std::move(groups)},
          {"ended", v.ended},
          {"exit_code", v.exit_code},
          {"reason", v.reason}};
}

RankView rank_view(const nlohmann::ordered_json& j) try {
  RankView v;
  v.rank = j.at("rank");
  v.ranks = j.at("ranks");
  v.pid = j.at("pid");
  v.host = j.at("host");
  v.tp = j.at("mesh").at(0);
  v.pp = j.at("mesh").at(1);
  v.dp = j.at("mesh").at(2);
  const std::string process = j.at("process");
  v.process = process.empty() ? '?' : process[0];
  v.age_s = j.at("age_s");
  v.io_bytes = j.at("io_bytes");
  v.progress = j.at("progress");
  v.silent_s = j.at("silent_s");
  v.step = j.at("step");
  v.steps_done = j.at("steps_done");
  v.saved_step = j.at("saved_step");
  v.action = static_cast<FlightAction>(std::clamp<int>(j.at("action"), 0, kFlightActions - 1));
  v.op = j.at("op");
  v.micro = j.at("micro");
  v.chunk = j.at("chunk");
  v.phase = static_cast<FlightPhase>(std::clamp<int>(j.at("phase"), 0, kFlightPhases - 1));
  v.phase_words = j.at("phase_words");
  v.phase_s = j.at("phase_s");
  v.longest = j.at("longest").get<std::vector<double>>();
  for (const auto& s : j.at("steps")) v.steps.push_back({.step = s.at(0), .seconds = s.at(1), .compute_s = s.at(2)});
  for (const auto& g : j.at("groups"))
    v.groups.push_back({.id = g.at("id"),
                        .name = g.at("name"),
                        .rank = g.at("rank"),
                        .size = g.at("size"),
                        .entered = g.at("entered"),
                        .left = g.at("left"),
                        .open = g.at("open"),
                        .on_stream = g.at("on_stream"),
                        .queued = g.at("queued"),
                        .awaited = g.at("awaited"),
                        .kind = g.at("kind"),
                        .peer = g.at("peer"),
                        .since_s = g.at("since_s")});
  v.ended = j.at("ended");
  v.exit_code = j.at("exit_code");
  v.reason = j.at("reason");
  return v;
} catch (const nlohmann::json::exception& e) {
  fail("the view of a rank: {}", e.what());
}

}  // namespace hlat
