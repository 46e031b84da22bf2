#include "record/folder_lease.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <random>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/machine.h"

namespace hlat {

namespace {

namespace fs = std::filesystem;

constexpr double kUnknownLease = 60;  // of an owner whose file cannot be read

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// The same for all processes that know each other by process id: containers of one host may not.
std::string process_space() {
  std::error_code none;
  return host_name() + " " + boot_id() + " " + fs::read_symlink("/proc/self/ns/pid", none).string();
}

struct ProcessStat {
  std::string state;  // a letter; empty: the kernel does not show this process
  std::string began;  // in the kernel's own count: a process id is used again, this is not
};

ProcessStat process_stat(int pid) {
  const std::string stat = read_text(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(stat.substr(name_end + 1));
  ProcessStat out;
  fields >> out.state;
  for (int field = 4; field <= 22; ++field) fields >> out.began;
  return fields ? out : ProcessStat{};
}

// What a lock says, where it says it in the right type.
template <class T>
T field(const nlohmann::json& lock, const char* key, const T& otherwise) try {
  return lock.value(key, otherwise);
} catch (const nlohmann::json::exception&) {
  return otherwise;
}

uint64_t random_token() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;  // never 0
}

}  // namespace

struct FolderLease::Owner {
  std::string host = "an unknown host", space, began, since = "an unknown time";
  int pid = 0;
  uint64_t token = 0;
  double lease_s = kUnknownLease;

  static Owner parse(const std::string& text) {
    Owner o;
    const auto j = nlohmann::json::parse(text, nullptr, false);
    if (!j.is_object()) return o;
    o.host = field(j, "host", o.host);
    o.space = field(j, "space", o.space);
    o.began = field(j, "began", o.began);
    o.since = field(j, "since", o.since);
    o.pid = field(j, "pid", o.pid);
    o.token = field(j, "token", o.token);
    o.lease_s = std::clamp(field(j, "lease_s", kUnknownLease), 1.0, 86400.0);
    return o;
  }
  std::string describe() const { return fmt::format("process {} on {}, since {}", pid, host, since); }
  bool here() const { return space == process_space() && pid > 0; }
  // On this host, of a process of another host nothing is known. One that the kernel hides (hidepid) may be the owner or a later process
  // with its number.
  enum class Life { gone, lives, unknown };
  Life life() const {
    if (!here()) return Life::unknown;
    if (kill(pid, 0) != 0 && errno != EPERM) return Life::gone;
    const ProcessStat stat = process_stat(pid);
    if (stat.state.empty()) return Life::unknown;
    return stat.began == began && stat.state != "Z" && stat.state != "X" ? Life::lives : Life::gone;
  }
};

uint64_t lease_token(const fs::path& folder) {
  const auto j = nlohmann::json::parse(read_text(folder / "run.lock"), nullptr, false);
  return j.is_object() ? field(j, "token", uint64_t{0}) : 0;
}

bool FolderLease::is_held(const fs::path& folder) {
  const fs::path file = folder / "run.lock";
  std::error_code none;
  const auto renewed = fs::last_write_time(file, none);
  if (none) return false;
  const Owner owner = Owner::parse(read_text(file));
  if (const Owner::Life life = owner.life(); life != Owner::Life::unknown) return life == Owner::Life::lives;
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - renewed).count() < owner.lease_s;
}

FolderLease::FolderLease(const fs::path& folder, double lease_s, const Say& say, std::string setting)
    : folder_(folder),
      file_(folder / "run.lock"),
      lease_s_(lease_s),
      setting_(std::move(setting)),
      token_(random_token()),
      since_(fmt::format("{:%F %T} UTC", fmt::gmtime(std::time(nullptr)))) {
  acquire(say);
  fd_ = open(file_.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd_ < 0 || !is_own()) fail("another process took the run folder {} at the same moment", folder_.string());
  thread_ = std::thread([this] { renew(); });
}

FolderLease::~FolderLease() {
  release();
  thread_.join();
  close(fd_);
}

// Of a fixed length, so that a renewal replaces it in place.
std::string FolderLease::content() const {
  const nlohmann::ordered_json j{{"host", host_name()},      {"pid", getpid()},
                                 {"since", since_},          {"lease_s", lease_s_},
                                 {"space", process_space()}, {"began", process_stat(getpid()).began},
                                 {"token", token_},          {"sequence", fmt::format("{:020}", sequence_)}};
  return json_text(j, 1) + "\n";
}

// False: the name is taken.
bool FolderLease::create(const fs::path& name, std::string_view content) const {
  const fs::path own = folder_ / fmt::format("run.lock.{:016x}", token_);
  OutputFile(own, OutputFile::Mode::create_new).write(content);
  const int failed = link(own.c_str(), name.c_str()) == 0 ? 0 : errno;
  struct stat info {};
  // An answer lost on the network makes a link that was made look like one that was there.
  const bool made = failed == 0 || (stat(own.c_str(), &info) == 0 && info.st_nlink == 2);
  unlink(own.c_str());
  if (made) return true;
  if (failed == EEXIST) return false;
  const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);  // no hard links here
  if (fd < 0 && errno == EEXIST) return false;
  if (fd < 0) fail_storage(errno, "cannot lock the run folder " + folder_.string());
  close(fd);
  OutputFile(name, OutputFile::Mode::append).write(content);
  return true;
}

void FolderLease::acquire(const Say& say) {
  while (!create(file_, content())) {
    const std::string found = read_text(file_);
    if (found.empty() && !fs::exists(file_)) continue;  // it was given back just now
    const Owner owner = Owner::parse(found);
    if (!is_dead(owner, found, say))
      fail<FolderHeld>("another run is writing to {}: {}; choose another {} or stop it", folder_.string(), owner.describe(), setting_);
    if (!replace(found)) continue;
    word_ = fmt::format("the run folder was taken over from {}, which {}", owner.describe(),
                        owner.life() == Owner::Life::gone ? "is gone" : fmt::format("was silent for {:g} s", owner.lease_s));
    return;
  }
}

bool FolderLease::is_dead(const Owner& owner, const std::string& content, const Say& say) const {
  if (const Owner::Life life = owner.life(); life != Owner::Life::unknown) return life == Owner::Life::gone;
  if (say) say(fmt::format("{} belongs to {}: waiting {:g} s for a sign of life", folder_.string(), owner.describe(), owner.lease_s));
  for (const double end = now_s() + owner.lease_s; now_s() < end; pause(std::min(1.0, owner.lease_s / 10)))
    if (read_text(file_) != content) return !fs::exists(file_);
  return true;
}

// Takes the place of a dead owner's file. False: look again, something has changed. The claim says who may: while it is held nobody
// else replaces the file. A claim that stays belongs to one who died with it, and counts no longer than a lease.
bool FolderLease::replace(const std::string& dead) {
  const fs::path claim = folder_ / "run.lock.claim";
  for (const double end = now_s() + lease_s_; !create(claim, content()); pause(0.05)) {
    if (read_text(file_) != dead) return false;
    const Owner other = Owner::parse(read_text(claim));
    if (other.life() == Owner::Life::gone || now_s() > end) unlink(claim.c_str());
  }
  const bool unchanged = read_text(file_) == dead;
  if (unchanged && rename(claim.c_str(), file_.c_str()) != 0) fail_storage(errno, "cannot take over the run folder " + folder_.string());
  if (!unchanged) unlink(claim.c_str());
  return unchanged;
}

bool FolderLease::is_own() const { return Owner::parse(read_text(file_)).token == token_; }

// A renewal that fails is tried again at the next turn: only the name's own file tells whose the folder is.
void FolderLease::renew() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::duration<double>(lease_s_ / 4), [&] { return released_; })) try {
      ++sequence_;
      const std::string text = content();
      if (pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) fsync(fd_);
      const uint64_t now = lease_token(folder_);
      std::error_code unreadable;  // a file that cannot be looked at is not gone
      if (now != token_ && (now != 0 || fs::status(file_, unreadable).type() == fs::file_type::not_found)) lost_ = true;
    } catch (const std::exception&) {
    }
}

void FolderLease::check() const {
  if (lost_) fail("this run has lost its folder {}: run.lock is gone or another process has taken over", folder_.string());
}

void FolderLease::release() {
  const std::lock_guard lock(mutex_);
  if (released_) return;
  released_ = true;
  if (is_own()) unlink(file_.c_str());
  wake_.notify_all();
}

}  // namespace hlat
