// Opens a data file by its name: finds its format, finds or makes its index, checks what the scan found wrong.
#include "data/reader/document_file.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "data/reader/format.h"
#include "data/reader/index_place.h"

namespace hlat {
namespace reader {
namespace {

constexpr uint64_t kWorthAThread = 1 << 20;  // bytes of a file

// Loads the index, or makes it. Error instead of a scan where options.verified says that there is an index already.
std::unique_ptr<Index> find_or_make_index(const Format& format, const InputFile& file, const InputFile* second,
                                          const ReaderOptions& options) {
  const IndexKey key = key_of(file, second, settings_of(format, options));
  const std::vector<std::string> places = index_places(file.path(), key.settings, options.cache_dir);
  for (const std::string& place : places)
    if (auto index = Index::load(place, key, options)) return index;
  if (options.verified) fail("{} or its index is not what the process that opened it first found: it changed during start-up", file.path());
  std::unique_ptr<Index> index;
  write_at_first(places, file.path(), [&](const std::string& place) {
    IndexWriter writer(place, key);
    ReaderOptions own = options;
    own.threads =
        static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(std::max(options.threads, 1)), 1 + file.size() / kWorthAThread));
    if (options.work != nullptr) ++std::atomic_ref(options.work->files_scanned);
    scan(format, {.file = file, .second = second, .options = own, .index = writer});
    writer.publish();
    index = Index::load(place, key, options);
    if (!index) fail("cannot read the index {} that was just made", place);
  });
  return index;
}

}  // namespace
}  // namespace reader

std::unique_ptr<DocumentFile> open_documents(const std::string& path, const ReaderOptions& options) {
  using namespace reader;  // NOLINT(google-build-using-namespace)
  const Format& format = format_of(path);
  ReaderOptions shared = options;
  if (!shared.files) shared.files = std::make_shared<OpenFiles>();
  InputFile file(data_path(path), shared.files);
  std::optional<InputFile> second;
  if (const std::string name = second_path(file.path()); !name.empty()) second.emplace(name, shared.files);
  auto index = find_or_make_index(format, file, second ? &*second : nullptr, shared);
  if (options.work != nullptr) ++std::atomic_ref(options.work->files_opened);
  auto opened = make_file(std::move(file), std::move(index), options);
  check_report(opened->report(), options);
  return opened;
}

void DocumentFile::tokens_part(uint64_t document, uint64_t begin, uint64_t count, std::vector<int32_t>& out) const {
  tokens(document, out);
  begin = std::min<uint64_t>(begin, out.size());
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(begin));
  out.resize(std::min<uint64_t>(count, out.size()));
}

std::string describe_bad(const FileReport& report) {
  const auto place = [&](const BadDocument& bad) {
    return bad.line > 0 ? fmt::format("{}:{}: {}", report.path, bad.line, bad.reason) : fmt::format("{}: {}", report.path, bad.reason);
  };
  std::string text;
  if (report.broken)
    text = fmt::format("{}: the file is broken, {} documents could be read\n  {}", report.path, report.documents, place(*report.broken));
  if (report.bad == 0) return text;
  if (!text.empty()) text += "\n";
  text += fmt::format("{}: {} of {} documents are bad", report.path, report.bad, report.bad + report.documents);
  for (const BadDocument& bad : report.examples) text += "\n  " + place(bad);
  if (report.bad > report.examples.size()) text += fmt::format("\n  and {} more", report.bad - report.examples.size());
  return text;
}

void check_report(const FileReport& report, const ReaderOptions& options) {
  constexpr uint64_t kFew = 3;     // bad documents that no share forbids
  constexpr uint64_t kMany = 100;  // documents of a file of which a few are few
  if (report.broken && !options.allow_broken) fail<UsageError>("{}\n  data.allow_broken=true takes what can be read", describe_bad(report));
  const uint64_t all = report.bad + report.documents;
  const double share = options.bad_share;
  if (static_cast<double>(report.bad) <= share * static_cast<double>(all)) return;
  const bool empty = report.documents == 0 && report.bad == 1 && report.examples.at(0).reason == reader::kNoDocuments;  // nothing is lost
  const bool allowed_as_broken = options.allow_broken && (report.documents == 0 || (report.broken && report.bad <= kFew));
  if (share > 0 && (empty || allowed_as_broken || (report.bad <= kFew && all >= kMany))) return;
  fail<UsageError>("{}\n  allowed is a share of {:g} (data.bad_share){}", describe_bad(report), share,
                   report.documents == 0 ? "; data.allow_broken=true leaves files without a good document out" : "");
}

}  // namespace hlat
