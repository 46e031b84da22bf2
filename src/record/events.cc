#include "record/events.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>

#include "base/file.h"
#include "base/json_text.h"
#include "base/machine.h"

namespace hlat {

namespace {

using EventJson = nlohmann::json;

template <class T>
void take(const EventJson& line, const char* key, T& value) {
  const auto found = line.find(key);
  if (found == line.end() || found->is_null()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) value = found->get<std::string>();
  } else {
    if (found->is_number()) value = found->get<T>();
  }
}

template <class T>
void take(const EventJson& line, const char* key, std::optional<T>& value) {
  if (const auto found = line.find(key); found != line.end() && found->is_number_integer()) value = found->get<T>();
}

double time_in(const EventJson& line, const char* key) {
  std::string text;
  take(line, key, text);
  return time_of(text);
}

RunEvent event_of(const EventJson& line) {
  RunEvent e{.time = time_in(line, "time"), .kind = line["kind"].get<std::string>()};
  take(line, "by", e.by);
  take(line, "step", e.step);
  take(line, "until", e.until);
  take(line, "reason", e.reason);
  take(line, "exit_code", e.exit_code);
  take(line, "rank", e.rank);
  take(line, "ranks", e.ranks);
  take(line, "host", e.host);
  take(line, "pid", e.pid);
  take(line, "saved", e.saved);
  take(line, "reached", e.reached);
  e.progressed_at = time_in(line, "progressed_at");
  take(line, "seconds", e.seconds);
  take(line, "total", e.total);
  take(line, "load_s", e.load_s);
  take(line, "repeated", e.repeated);
  take(line, "repeated_s", e.repeated_s);
  take(line, "attempt", e.attempt);
  take(line, "cause", e.cause);
  take(line, "pause_s", e.pause_s);
  take(line, "rule", e.rule);
  take(line, "mesh", e.mesh);
  if (const auto hosts = line.find("hosts"); hosts != line.end() && hosts->is_array())
    for (const auto& host : *hosts)
      if (host.is_string()) e.hosts.push_back(host.get<std::string>());
  return e;
}

std::string what_is_wrong(const EventJson& line) {
  if (line.is_discarded() || !line.is_object()) return "is no JSON object";
  if (!line.contains("kind") || !line["kind"].is_string()) return "has no kind";
  if (time_in(line, "time") <= 0) return "has no time";
  return "";
}

}  // namespace

EventsRead read_events(const std::filesystem::path& folder) {
  EventsRead out;
  std::ifstream in(folder / "events.jsonl", std::ios::binary);
  int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const EventJson json = EventJson::parse(line, nullptr, false);
    if (const std::string wrong = what_is_wrong(json); wrong.empty())
      out.events.push_back(event_of(json));
    else if (!in.eof())
      out.problems.push_back(fmt::format("line {} {}", number, wrong));
  }
  return out;
}

bool append_event(const std::filesystem::path& folder, const std::string& line) noexcept {
  const int fd = open((folder / "events.jsonl").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  struct stat before {};
  const bool known = fstat(fd, &before) == 0;
  ssize_t n = 0;
  do n = ::write(fd, line.data(), line.size());
  while (n < 0 && errno == EINTR);
  const bool whole = n == static_cast<ssize_t>(line.size());
  // Part of a line is cut off again, unless another process has written behind it.
  struct stat after {};
  if (!whole && n > 0 && known && fstat(fd, &after) == 0 && after.st_size == before.st_size + n)
    static_cast<void>(ftruncate(fd, before.st_size) == 0);
  close(fd);
  return whole;
}

std::string utc_text(double time) {
  const auto ms = static_cast<int64_t>(std::llround(time * 1000));
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000);
}

double time_of(std::string_view utc) noexcept {
  std::tm tm{};
  double seconds = 0;
  char end = 0;
  const std::string text(utc.substr(0, 64));
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%lf%c", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &seconds,
                  &end) != 7 ||
      end != 'Z')
    return 0;
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  return static_cast<double>(timegm(&tm)) + seconds;
}

double wall_time() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

LaunchJournal::LaunchJournal(std::filesystem::path folder, std::string version) : folder_(std::move(folder)), version_(std::move(version)) {
  try {
    std::filesystem::create_directories(folder_);
    cut_to_whole_lines(folder_ / "events.jsonl");
  } catch (const std::exception&) {  // found again with the first line, which is then held
  }
}

LaunchJournal::~LaunchJournal() { write(); }

void LaunchJournal::tell(RunEvent e) {
  nlohmann::ordered_json j{{"time", utc_text(wall_time())}, {"kind", e.kind},     {"by", "launch"}, {"step", e.step}, {"reason", e.reason},
                           {"exit_code", nullptr},          {"attempt", attempt_}};
  if (e.until > e.step) j["until"] = e.until;
  if (e.exit_code) j["exit_code"] = *e.exit_code;
  if (e.rank >= 0) j["rank"] = e.rank;
  if (e.ranks > 0) j["ranks"] = e.ranks;
  if (!e.mesh.empty()) j["mesh"] = e.mesh;
  if (!e.hosts.empty()) j["hosts"] = e.hosts;
  if (!e.cause.empty()) j["cause"] = e.cause;
  if (e.progressed_at > 0) j["progressed_at"] = utc_text(e.progressed_at);
  if (e.saved) j["saved"] = *e.saved;
  if (e.kind == "teardown" || e.kind == "check" || e.kind == "wait" || e.kind == "fault") j["seconds"] = e.seconds;
  if (e.kind == "restart") j["pause_s"] = e.pause_s;
  j["host"] = e.host.empty() ? host_name() : e.host;
  j["pid"] = getpid();
  j["version"] = version_;
  held_.push_back(json_text(j) + "\n");
  write();
}

void LaunchJournal::write() {
  size_t done = 0;
  while (done < held_.size() && append_event(folder_, held_[done])) ++done;
  held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(done));
}

void LaunchJournal::launch(const std::string& reason, bool fresh) {
  tell({.kind = "launch", .reason = reason, .rank = -1, .cause = fresh ? kFreshLaunch : ""});
}

void LaunchJournal::attempt(const Attempt& a) {
  attempt_ = a.number;
  tell({.kind = "attempt",
        .step = a.from,
        .reason = fmt::format("attempt {}", a.number),
        .rank = -1,
        .ranks = a.ranks,
        .mesh = a.mesh,
        .hosts = a.hosts});
}

void LaunchJournal::fault(const Fault& f) {
  RunEvent e{.kind = "fault",
             .step = f.step,
             .until = f.until,
             .reason = f.reason,
             .rank = f.rank,
             .host = f.host,
             .progressed_at = f.progressed_at,
             .cause = f.kind};
  if (f.progressed_at > 0) e.seconds = std::max(0.0, wall_time() - f.progressed_at);
  if (f.exit_code != 0) e.exit_code = f.exit_code;
  if (f.saved > 0) e.saved = f.saved;
  tell(std::move(e));
}

void LaunchJournal::teardown(double seconds, const std::string& reason) {
  tell({.kind = "teardown", .reason = reason, .rank = -1, .seconds = seconds});
}

void LaunchJournal::restart(double pause_s, int64_t from, const std::string& reason) {
  tell({.kind = "restart", .step = from, .reason = reason, .rank = -1, .pause_s = pause_s});
}

void LaunchJournal::skip(int64_t first, int64_t last, const std::string& reason) {
  tell({.kind = "skip", .step = first, .until = last, .reason = reason, .rank = -1});
}

void LaunchJournal::straggler(int rank, const std::string& host, int64_t step, const std::string& reason) {
  tell({.kind = "straggler", .step = step, .reason = reason, .rank = rank, .host = host});
}

void LaunchJournal::evict(const std::string& host, const std::string& reason) {
  tell({.kind = "evict", .reason = reason, .rank = -1, .host = host});
}

void LaunchJournal::check(double seconds, bool passed, const std::string& reason) {
  tell({.kind = "check", .reason = reason, .exit_code = passed ? 0 : 1, .rank = -1, .seconds = seconds});
}

void LaunchJournal::wait(double seconds, const std::string& reason) {
  tell({.kind = "wait", .reason = reason, .rank = -1, .seconds = seconds});
}

void LaunchJournal::stop(int exit_code, int64_t step, const std::string& reason, bool by_signal) {
  tell({.kind = "stop", .step = step, .reason = reason, .exit_code = exit_code, .rank = -1, .cause = by_signal ? kStopBySignal : ""});
}

void LaunchJournal::finished(int64_t step) { tell({.kind = "finished", .step = step, .reason = "finished", .exit_code = 0, .rank = -1}); }

}  // namespace hlat
