#include "backend/cuda/matmul/matmul_choices.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/rng.h"

namespace hlat {

namespace {

constexpr const char* kFile = "matmul_choices.txt";
constexpr const char* kHeader = "hlat matmul choices 1";

std::string body_of(const std::string& key, const MatmulChoice& c) {
  return fmt::format("{}|{}|{}|{:.2f}", key, algo_text(c), c.workspace, c.microseconds);
}

std::optional<std::pair<std::string, MatmulChoice>> parse(const std::string& line) {
  std::array<size_t, 4> bar{};  // the last four bars of the line
  size_t end = std::string::npos;
  for (size_t i = 4; i-- > 0;) {
    bar[i] = line.rfind('|', end);
    if (bar[i] == std::string::npos || bar[i] == 0) return {};
    end = bar[i] - 1;
  }
  try {
    if (std::stoull(line.substr(bar[3] + 1), nullptr, 16) != hash_name(line.substr(0, bar[3]))) return {};
    std::optional<MatmulChoice> c = parse_algo(line.substr(bar[0] + 1, bar[1] - bar[0] - 1));
    if (!c) return {};
    c->workspace = std::stoull(line.substr(bar[1] + 1));
    c->microseconds = std::stod(line.substr(bar[2] + 1));
    return std::pair{line.substr(0, bar[0]), *c};
  } catch (const std::exception&) {
    return {};
  }
}

// An exclusive lock on a file next to the choices. Without one (a file system without locks) the rename alone keeps the file whole.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : fd_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (fd_ >= 0) flock(fd_, LOCK_EX);
  }
  ~FileLock() {
    if (fd_ >= 0) close(fd_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

}  // namespace

std::string algo_text(const MatmulChoice& choice) {
  std::string text;
  for (const uint64_t word : choice.algo) text += fmt::format("{:016x}", word);
  return text;
}

std::optional<MatmulChoice> parse_algo(std::string_view text) {
  constexpr size_t kDigits = 16;  // of a word
  MatmulChoice c;
  if (text.size() != kDigits * c.algo.size()) return {};
  for (size_t i = 0; i < c.algo.size(); ++i) {
    const char* first = text.data() + kDigits * i;
    const auto [end, error] = std::from_chars(first, first + kDigits, c.algo[i], 16);
    if (error != std::errc() || end != first + kDigits) return {};
  }
  return c;
}

MatmulChoices::MatmulChoices(std::string dir) : dir_(std::move(dir)) {
  if (!dir_.empty()) read();
}

std::optional<MatmulChoice> MatmulChoices::find(const std::string& key) const {
  const auto found = choices_.find(key);
  if (found == choices_.end()) return {};
  return found->second;
}

MatmulChoice MatmulChoices::add(const std::string& key, const MatmulChoice& choice, bool replace) {
  if (dir_.empty()) return choices_[key] = choice;
  std::error_code error;
  std::filesystem::create_directories(dir_, error);
  const FileLock lock(dir_ + "/" + kFile + ".lock");
  read();  // what other processes stored meanwhile
  const auto [entry, is_new] = choices_.try_emplace(key, choice);
  if (!is_new && !replace) return entry->second;
  entry->second = choice;
  write();
  return choice;
}

void MatmulChoices::read() {
  std::ifstream in(dir_ + "/" + kFile);
  std::string line;
  if (!std::getline(in, line) || line != kHeader) return;
  while (std::getline(in, line))
    if (auto entry = parse(line)) choices_[entry->first] = entry->second;
}

void MatmulChoices::write() {
  const std::string path = dir_ + "/" + kFile, fresh = fmt::format("{}.{}", path, getpid());
  std::ofstream out(fresh, std::ios::trunc);
  out << kHeader << "\n";
  for (const auto& [key, choice] : choices_) {
    const std::string body = body_of(key, choice);
    out << body << fmt::format("|{:016x}\n", hash_name(body));
  }
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(fresh, path, error);
  if (!out || error) {
    problem_ = fmt::format("{} cannot be written", path);
    std::filesystem::remove(fresh, error);
  }
}

}  // namespace hlat
