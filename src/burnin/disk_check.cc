#include "burnin/disk_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/file.h"
#include "base/machine.h"
#include "base/median.h"
#include "runtime/existing_folder.h"
#include "runtime/start_point.h"

namespace hlat {

namespace {

constexpr size_t kDiskBlock = size_t{4} << 20;

// A file without a name.
class ScratchFile {
 public:
  explicit ScratchFile(const std::filesystem::path& folder) : path_((folder / ".hlat_check_XXXXXX").string()) {
    fd_ = mkstemp(path_.data());
    if (fd_ < 0) fail_storage(errno, "cannot create a file in " + folder.string());
    unlink(path_.c_str());
  }
  ~ScratchFile() { close(fd_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void write(const std::vector<uint64_t>& words, size_t bytes, size_t at, bool full) const {
    const auto* data = reinterpret_cast<const char*>(words.data());
    for (size_t done = 0; done < bytes;) {
      const ssize_t n = full ? -1 : pwrite(fd_, data + done, bytes - done, static_cast<off_t>(at + done));
      if (n < 0 && !full && errno == EINTR) continue;
      if (n < 0) fail_storage(full ? ENOSPC : errno, "cannot write to " + path_);
      done += static_cast<size_t>(n);
    }
  }
  void sync() const {
    if (fsync(fd_) != 0) fail_storage(errno, "cannot put on the disk: " + path_);
  }
  void forget_cached() const { posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED); }
  void read(std::vector<uint64_t>& words, size_t at) const {
    auto* data = reinterpret_cast<char*>(words.data());
    const size_t bytes = words.size() * sizeof(uint64_t);
    for (size_t done = 0; done < bytes;) {
      const ssize_t n = pread(fd_, data + done, bytes - done, static_cast<off_t>(at + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail_storage(n < 0 ? errno : EIO, "cannot read " + path_);
      done += static_cast<size_t>(n);
    }
  }

 private:
  std::string path_;
  int fd_;
};

// Words that no file system can compress or share with another block.
void fill_block(std::vector<uint64_t>& words, size_t block) {
  uint64_t z = (block + 1) * 0x9e3779b97f4a7c15ull;
  for (uint64_t& w : words) {
    z ^= z << 13;
    z ^= z >> 7;
    z ^= z << 17;
    w = z;
  }
}

void write_and_read(const ScratchFile& file, size_t blocks, bool full, DiskMeasured& m) {
  std::vector<uint64_t> words(kDiskBlock / sizeof(uint64_t)), got(words.size());
  double write_s = 0, read_s = 0;
  for (size_t b = 0; b < blocks; ++b) {
    fill_block(words, b);
    const double start = now_s();
    file.write(words, kDiskBlock, b * kDiskBlock, full && b >= blocks / 2);
    write_s += now_s() - start;
  }
  const double start = now_s();
  file.sync();
  write_s += now_s() - start;
  file.forget_cached();
  for (size_t b = 0; b < blocks; ++b) {
    fill_block(words, b);
    const double begin = now_s();
    file.read(got, b * kDiskBlock);
    read_s += now_s() - begin;
    const auto wrong = std::mismatch(words.begin(), words.end(), got.begin());
    if (wrong.first != words.end())
      throw FaultError(fmt::format("wrote {:016x} at byte {} and read {:016x}", *wrong.first,
                                   b * kDiskBlock + static_cast<size_t>(wrong.first - words.begin()) * sizeof(uint64_t), *wrong.second));
  }
  const auto bytes = static_cast<double>(blocks * kDiskBlock);
  m.write = bytes / std::max(write_s, 1e-9);
  m.read = bytes / std::max(read_s, 1e-9);
}

void sync_records(const ScratchFile& file, int records, DiskMeasured& m) {
  constexpr size_t kRecord = 4096;
  const std::vector<uint64_t> record(kRecord / sizeof(uint64_t), 1);
  std::vector<double> times;
  for (int i = 0; i < records; ++i) {
    const double start = now_s();
    file.write(record, kRecord, static_cast<size_t>(i) * kRecord, false);
    file.sync();
    times.push_back(now_s() - start);
  }
  m.sync_s = upper_median(times);
  m.worst_sync_s = times.empty() ? 0 : *std::max_element(times.begin(), times.end());
}

}  // namespace

DiskMeasured measure_disk(const std::filesystem::path& folder, size_t bytes, int records, bool full) {
  DiskMeasured m{.measured = true, .folder = folder.string()};
  try {
    const ScratchFile file(folder);
    write_and_read(file, std::max<size_t>(1, bytes / kDiskBlock), full, m);
    sync_records(file, records, m);
  } catch (const DiskFull& e) {
    m.words = fmt::format("full: {}", e.what());
  } catch (const Error& e) {
    m.words = fmt::format("failing: {}: {}", folder.string(), e.what());
  }
  return m;
}

PartReport check_disk(const CheckRun& run) {
  run.say("disk");
  DiskMeasured own;
  const bool quick = run.options.short_form, full = run.plants(FaultKind::check_disk);
  if (run.speaks_for_host() || full) {
    const std::filesystem::path folder = existing_folder(checkpoint_dir(run.config));
    std::error_code none;
    const size_t tenth = std::filesystem::space(folder, none).available / 10;
    own = measure_disk(folder, std::min(tenth, quick ? size_t{16} << 20 : size_t{1} << 30), quick ? 4 : 32, full);
  }
  const auto all = gather_json(run.world(), {{"measured", own.measured},
                                             {"folder", own.folder},
                                             {"write", own.write},
                                             {"read", own.read},
                                             {"sync_s", own.sync_s},
                                             {"worst_sync_s", own.worst_sync_s},
                                             {"words", own.words}});
  PartReport report{.name = "disk", .title = "written, put on the disk, read back", .alignment = "rllrrrr"};
  report.rows.push_back({"rank", "host", "folder", "write MB/s", "read MB/s", "fsync ms", "worst"});
  report.json["hosts"] = nlohmann::ordered_json::array();
  for (size_t r = 0; r < all.size(); ++r) {
    const nlohmann::json& j = all[r];
    if (!j["measured"].get<bool>()) continue;
    const auto number = [&](const char* name, double scale) { return figure(j[name].get<double>() * scale); };
    report.rows.push_back({fmt::format("{}", r), run.hosts[r], j["folder"], number("write", 1e-6), number("read", 1e-6),
                           number("sync_s", 1e3), number("worst_sync_s", 1e3)});
    report.json["hosts"].push_back({{"rank", r},
                                    {"host", run.hosts[r]},
                                    {"folder", j["folder"]},
                                    {"write_bytes_per_s", j["write"]},
                                    {"read_bytes_per_s", j["read"]},
                                    {"fsync_s", j["sync_s"]},
                                    {"worst_fsync_s", j["worst_sync_s"]}});
    if (const std::string words = j["words"]; !words.empty()) report.findings.push_back(run.finding("disk", r, words));
  }
  return report;
}

}  // namespace hlat
