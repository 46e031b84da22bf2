#include "checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "checkpoint/file_input.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMaxIndex = uint64_t{1} << 30;  // bytes that are read to see whether they are one
constexpr std::string_view kPrefix = "step_", kUnfinished = ".tmp", kReplaced = ".replaced";

bool means_absent(int error) { return error == ENOENT || error == ENOTDIR; }

// A disk that does not answer must not make a checkpoint look like none: it would be removed, or trained once more.
bool has_index(const fs::path& folder) {
  const std::string path = folder / kIndexName;
  struct stat s {};
  if (stat(path.c_str(), &s) == 0) return S_ISREG(s.st_mode);
  if (!means_absent(errno) && errno != ELOOP) fail_storage(errno, "cannot look for " + path);  // ELOOP: a link that leads nowhere
  return false;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  if (error && means_absent(error.value())) return entries;
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) entries.push_back(it->path());
  if (error) fail_storage(error.value(), "cannot list " + folder.string());
  return entries;
}

// The names of a new folder and of those around it, which may be new as well. Those that may not be read are not of this run.
void sync_names(const fs::path& folder) {
  fs::path at = fs::absolute(folder);
  try {
    for (; at.has_relative_path(); at = at.parent_path()) sync_to_disk(at.parent_path());
  } catch (const UsageError&) {
  }
}

void rename_folder(const fs::path& from, const fs::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) fail_storage(errno, fmt::format("cannot rename {} to {}", from.string(), to.string()));
}

void remove_folder(const fs::path& folder) try { fs::remove_all(folder); } catch (const fs::filesystem_error& e) {
  fail_storage(e.code().value(), "cannot remove " + folder.string());
}

void write_whole(const fs::path& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) fail_storage(errno, "cannot open " + path.string());
  size_t done = 0;
  int error = 0;
  while (done < text.size() && error == 0) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n >= 0)
      done += static_cast<size_t>(n);
    else if (errno != EINTR)
      error = errno;
  }
  if (error == 0 && fsync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error != 0) fail_storage(error, "cannot write " + path.string());
}

}  // namespace

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return {};
  int64_t step = 0;
  const char *first = name.data() + kPrefix.size(), *last = name.data() + name.size();
  const auto [end, error] = std::from_chars(first, last, step);
  return error == std::errc() && end == last && step >= 0 && (*first != '0' || last - first == 1) ? std::optional(step) : std::nullopt;
}

fs::path checkpoint_path(const fs::path& parent, int64_t step) { return parent / fmt::format("{}{}", kPrefix, step); }

std::vector<int64_t> checkpoint_steps(const fs::path& parent) {
  std::vector<int64_t> steps;
  for (const fs::path& entry : entries_of(parent))
    if (const auto step = step_of(entry.filename()); step && has_index(entry)) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

CheckpointIndex read_index(const fs::path& folder) {
  const fs::path path = folder / kIndexName;
  const FileInput file(path);
  if (file.bytes() > kMaxIndex) fail<DamagedCheckpoint>("{} has {} bytes", path.string(), file.bytes());
  std::string text(file.bytes(), '\0');
  file.read(text.data(), text.size(), 0);
  try {
    CheckpointIndex index = CheckpointIndex::parse(text);
    if (const auto step = step_of(folder.filename()); step && *step != index.step)
      fail<DamagedCheckpoint>("it is of step {}: its folder has another's name", index.step);
    return index;
  } catch (const DamagedCheckpoint& e) {
    fail<DamagedCheckpoint>("{}: {}", path.string(), e.what());
  } catch (const UsageError& e) {
    fail<UsageError>("{}: {}", path.string(), e.what());
  }
}

fs::path NewCheckpoint::folder_of(const fs::path& parent, int64_t step) {
  return fs::path(checkpoint_path(parent, step).string() + std::string(kUnfinished));
}

NewCheckpoint::NewCheckpoint(fs::path parent, int64_t step) : parent_(std::move(parent)), folder_(folder_of(parent_, step)), step_(step) {
  std::error_code error;
  remove_folder(folder_);
  const bool is_first = fs::create_directories(parent_, error);
  if (!error) fs::create_directory(folder_, error);
  if (error) fail_storage(error.value(), "cannot create " + folder_.string());
  if (is_first) sync_names(parent_);
}

void NewCheckpoint::commit(const CheckpointIndex& index) {
  write_whole(folder_ / kIndexName, index.save());
  sync_to_disk(folder_);
  const fs::path to = checkpoint_path(parent_, step_), replaced = to.string() + std::string(kReplaced);
  std::error_code error;
  const bool replaces = fs::exists(to, error);
  if (replaces) {
    remove_folder(replaced);
    rename_folder(to, replaced);
  }
  rename_folder(folder_, to);
  sync_to_disk(parent_);
  if (replaces) remove_folder(replaced);
}

void NewCheckpoint::discard() noexcept {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void remove_checkpoint(const fs::path& folder) {
  std::error_code error;
  fs::remove(folder / kIndexName, error);
  if (error) fail_storage(error.value(), "cannot remove " + (folder / kIndexName).string());
  remove_folder(folder);
}

std::optional<int64_t> leftover_step_of(const std::string& name) {
  for (const std::string_view suffix : {kUnfinished, kReplaced})
    if (name.ends_with(suffix)) return step_of(name.substr(0, name.size() - suffix.size()));
  return {};
}

std::vector<Leftover> leftovers(const fs::path& parent) {
  std::vector<Leftover> found;
  for (const fs::path& entry : entries_of(parent)) {
    const std::string name = entry.filename();
    if (const auto step = step_of(name); step && !has_index(entry)) found.push_back({entry, *step});
    if (const auto step = leftover_step_of(name)) found.push_back({entry, *step});
  }
  std::sort(found.begin(), found.end(), [](const Leftover& a, const Leftover& b) { return a.step < b.step; });
  return found;
}

// A commit that died between its renames has put the old checkpoint of its step away and none in its place.
void remove_leftovers(const fs::path& parent) {
  for (const Leftover& left : leftovers(parent)) {
    const fs::path place = checkpoint_path(parent, left.step);
    if (left.folder == place && has_index(place)) continue;  // put back just now
    if (left.folder.string().ends_with(kReplaced) && has_index(left.folder) && !has_index(place)) {
      remove_folder(place);
      rename_folder(left.folder, place);
    } else {
      remove_folder(left.folder);
    }
  }
}

std::vector<int64_t> beyond_retention(const std::vector<int64_t>& steps, int64_t keep, int64_t keep_every) {
  std::vector<int64_t> sorted = steps, gone;
  std::sort(sorted.begin(), sorted.end());
  // A save that came late stands for the multiple that it passed. Removing one that passed none changes nothing for the others.
  for (size_t i = 0; i + static_cast<size_t>(keep) < sorted.size(); ++i)
    if (keep_every == 0 || sorted[i] / keep_every == (i > 0 ? sorted[i - 1] / keep_every : 0)) gone.push_back(sorted[i]);
  return gone;
}

uint64_t free_bytes(const fs::path& folder) {
  struct statvfs s {};
  if (statvfs(folder.c_str(), &s) != 0) fail_storage(errno, "cannot ask for the free space of " + folder.string());
  return static_cast<uint64_t>(s.f_bavail) * s.f_frsize;
}

}  // namespace hlat
