#include "data/reader/open_all.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "data/reader/content_hash.h"
#include "data/reader/format.h"
#include "data/reader/index_pack.h"
#include "data/reader/index_place.h"
#include "data/reader/pipeline.h"

namespace hlat {
namespace reader {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSmall = 1 << 20;  // bytes of a file; below, its index goes with others
constexpr size_t kWorthAPack = 8;     // small files
constexpr size_t kFilesAtOnce = 32;   // small files that a thread takes at once

// Counts what scans have done, from all threads.
class Told {
 public:
  explicit Told(const SourceFiles& source) : observer_(source.observer) { progress_.source = source.name; }
  void expect(uint64_t files, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    progress_.all_files += files;
    progress_.all_bytes += bytes;
  }
  void add(uint64_t files, uint64_t bytes) {
    if (!observer_) return;
    const std::lock_guard lock(mutex_);
    progress_.files += files;
    progress_.bytes += bytes;
    observer_(progress_);
  }

 private:
  ScanObserver observer_;
  std::mutex mutex_;
  ScanProgress progress_;
};

// Runs body(i) for all i on several threads. Of several failures that of the smallest i is thrown.
template <class Body>
void for_all(size_t count, int threads, const Body& body) {
  size_t next = 0;
  const auto give = [&]() -> std::optional<size_t> { return next < count ? std::optional(next++) : std::nullopt; };
  const auto work = [&](size_t i) -> std::exception_ptr {
    try {
      body(i);
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  };
  const auto take = [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
  };
  Pipeline(give, work, take).run(static_cast<int>(std::clamp<size_t>(static_cast<size_t>(threads), 1, std::max<size_t>(count, 1))));
}

// The small files of a source.
class SmallFiles {
 public:
  SmallFiles(const SourceFiles& source, std::vector<size_t> which, const ReaderOptions& options, Told& told)
      : source_(source), which_(std::move(which)), options_(options), told_(told), folder_(common_folder()) {
    const uint64_t tag = hash_pair(hash_content(fs::absolute(source.pattern).lexically_normal().string()),
                                   hash_content(options.field + "\n" + options.separator));
    places_ = index_places(folder_ + "files", tag, options.cache_dir);
  }

  // Sets the items of `out` that belong to the small files.
  void open(std::vector<std::unique_ptr<DocumentFile>>& out) {
    if (!find(out)) {
      if (!source_.verified.empty()) fail_changed(missing_);
      write_at_first(places_, source_.pattern, [&](const std::string& place) { write(place); });
      if (!pack_ || !attach(out)) fail("the files of {} change while they are opened", source_.pattern);
    }
    if (options_.work != nullptr) options_.work->files_opened += which_.size();
  }

 private:
  const FoundFile& file(size_t i) const { return source_.files[which_[i]]; }
  std::string name(size_t i) const { return file(i).path.substr(folder_.size()); }

  // Ends with a slash, or is empty.
  std::string common_folder() const {
    std::string folder = file(0).path;
    for (size_t i = 0; i < which_.size(); ++i) {
      const std::string& path = file(i).path;
      const auto [end, other] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
      folder.erase(end, folder.end());
    }
    folder.erase(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
    return folder;
  }

  // The entry of a file that has not changed since; null: it has to be scanned.
  const PackEntry* current(size_t i) const {
    if (!pack_) return nullptr;
    const PackEntry* e = pack_->find(name(i));
    if (e == nullptr) return nullptr;
    const FileStamp& now = file(i).stamp;
    const IndexKey key = pack_->key(*e);
    if (key.settings != settings_of(format_of(file(i).path), options_)) return nullptr;
    if (now == e->stamp) return e;
    if (now.size != e->stamp.size || now.changed != e->stamp.changed) return nullptr;
    // Renamed, copied with its time, or with other permissions; or written to, and the time set back.
    return InputFile(file(i).path, options_.files).sample() == key.sample ? e : nullptr;
  }

  // Keeps a pack where not all is right, for what is.
  bool find(std::vector<std::unique_ptr<DocumentFile>>& out) {
    for (const std::string& place : places_) {
      std::unique_ptr<IndexPack> pack = IndexPack::load(place, options_.files);
      if (!pack) continue;
      pack_ = std::move(pack);
      if (attach(out)) return true;
    }
    return false;
  }

  [[noreturn]] void fail_changed(size_t i) const {
    fail("{} or its index is not what the process that opened it first found: it changed during start-up", file(i).path);
  }

  // False when a file has no sound index in the pack.
  bool attach(std::vector<std::unique_ptr<DocumentFile>>& out) {
    std::atomic<bool> missing = false;
    const size_t chunks = (which_.size() + kFilesAtOnce - 1) / kFilesAtOnce;
    for_all(chunks, options_.threads, [&](size_t chunk) {
      for (size_t i = chunk * kFilesAtOnce; i < std::min((chunk + 1) * kFilesAtOnce, which_.size()) && !missing; ++i)
        if (!attach(i, out[which_[i]])) missing_ = i, missing = true;
    });
    return !missing;
  }
  bool attach(size_t i, std::unique_ptr<DocumentFile>& out) const {
    const PackEntry* e = current(i);
    if (e == nullptr) return false;
    ReaderOptions options = options_;
    if (!source_.verified.empty()) options.verified = source_.verified[which_[i]];
    const IndexKey key = pack_->key(*e);
    auto index = Index::part_of(pack_->file(), e->begin, e->bytes, key, options);
    if (!index) return false;
    out = make_file(InputFile(file(i).path, file(i).stamp, key.sample, options_.files), std::move(index), options_);
    return true;
  }

  struct Section {
    std::string name;
    FileStamp stamp;
    std::string image;
    std::exception_ptr failure;
  };
  Section section(size_t i) const {
    Section s{.name = name(i), .stamp = file(i).stamp, .image = {}, .failure = {}};
    if (const PackEntry* e = current(i)) {
      s.image = pack_->image(*e);
      if (Index::part_of(pack_->file(), e->begin, e->bytes, pack_->key(*e), {})) return s;
    }
    const Format& format = format_of(file(i).path);
    const InputFile data(file(i).path, options_.files);
    s.stamp = data.stamp();
    IndexWriter writer("", key_of(data, nullptr, settings_of(format, options_)));
    if (options_.work != nullptr) ++std::atomic_ref(options_.work->files_scanned);
    ReaderOptions own = options_;
    own.threads = 1;
    own.scanned = {};
    scan(format, {.file = data, .second = nullptr, .options = own, .index = writer});
    s.image = writer.image();
    return s;
  }

  // A pack of all files, with what is right in the one there is.
  void write(const std::string& place) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < which_.size(); ++i) bytes += file(i).stamp.size;
    told_.expect(which_.size(), bytes);
    IndexPackWriter writer(place);
    size_t at = 0;
    const auto next = [&]() -> std::optional<size_t> {
      const size_t begin = at;
      at += kFilesAtOnce;
      return begin < which_.size() ? std::optional(begin) : std::nullopt;
    };
    const auto work = [&](size_t begin) {
      std::vector<Section> sections;
      for (size_t i = begin; i < std::min(begin + kFilesAtOnce, which_.size()); ++i) {
        try {
          sections.push_back(section(i));
        } catch (...) {
          sections.push_back({.name = {}, .stamp = {}, .image = {}, .failure = std::current_exception()});
          break;
        }
      }
      return sections;
    };
    const auto take = [&](const std::vector<Section>& sections) {
      uint64_t done = 0;
      for (const Section& s : sections) {
        if (s.failure) std::rethrow_exception(s.failure);  // that of the first file, whatever thread met it
        writer.add(s.name, s.stamp, s.image);
        done += s.stamp.size;
      }
      told_.add(sections.size(), done);
    };
    Pipeline(next, work, take).run(options_.threads);
    writer.publish();
    pack_ = IndexPack::load(place, options_.files);
  }

  const SourceFiles& source_;
  std::vector<size_t> which_;
  const ReaderOptions& options_;
  Told& told_;
  std::string folder_;
  std::vector<std::string> places_;
  std::unique_ptr<IndexPack> pack_;
  std::atomic<size_t> missing_ = 0;  // a file without a sound index in the pack that was looked at last
};

void open_large(const SourceFiles& source, const std::vector<size_t>& which, const ReaderOptions& options, Told& told,
                std::vector<std::unique_ptr<DocumentFile>>& out) {
  if (which.empty()) return;
  const int at_once = static_cast<int>(std::min<size_t>(static_cast<size_t>(std::max(options.threads, 1)), which.size()));
  for_all(which.size(), at_once, [&](size_t i) {
    const FoundFile& file = source.files[which[i]];
    ReaderOptions own = options;
    own.threads = std::max(1, options.threads / at_once);
    if (!source.verified.empty()) own.verified = source.verified[which[i]];
    bool begun = false;
    std::mutex mutex;
    own.scanned = [&](uint64_t bytes) {
      {
        const std::lock_guard lock(mutex);
        if (!std::exchange(begun, true)) told.expect(1, file.stamp.size);
      }
      told.add(0, bytes);
    };
    own.allow_broken = true;  // all reports are looked at below, in order
    own.bad_share = 1;
    out[which[i]] = open_documents(file.path, own);
    if (begun) told.add(1, 0);
  });
}

}  // namespace
}  // namespace reader

std::vector<std::unique_ptr<DocumentFile>> open_all(const SourceFiles& source, const ReaderOptions& options) {
  using namespace reader;  // NOLINT(google-build-using-namespace)
  ReaderOptions shared = options;
  if (!shared.files) shared.files = std::make_shared<OpenFiles>();
  std::vector<size_t> small, large;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const bool packed = source.files[i].stamp.size < kSmall && second_path(data_path(source.files[i].path)).empty();
    format_of(source.files[i].path);  // an Error for a name of no format, before anything is scanned
    (packed ? small : large).push_back(i);
  }
  if (small.size() < kWorthAPack) {
    large.insert(large.end(), small.begin(), small.end());
    std::sort(large.begin(), large.end());
    small.clear();
  }
  Told told(source);
  std::vector<std::unique_ptr<DocumentFile>> out(source.files.size());
  if (!small.empty()) SmallFiles(source, std::move(small), shared, told).open(out);
  open_large(source, large, shared, told, out);
  for (const auto& file : out) check_report(file->report(), options);
  return out;
}

}  // namespace hlat
