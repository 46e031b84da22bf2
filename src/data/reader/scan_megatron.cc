// The scan of a Megatron pair: batches of documents. The .idx is read in pieces too; it is no smaller than memory by itself.
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "data/reader/megatron.h"
#include "data/reader/pipeline.h"
#include "data/reader/scan.h"

namespace hlat::reader {
namespace {

constexpr uint64_t kDocumentsAtOnce = 4096;  // documents
constexpr size_t kHeader = 9 + 8 + 1 + 8 + 8;

// Numbers of one of the .idx's lists, read mostly forward.
template <class T>
class NumberList {
 public:
  NumberList(const InputFile& file, uint64_t begin) : file_(file), begin_(begin) {}
  int64_t at(uint64_t i) {
    if (i < first_ || i >= first_ + filled_) load(i);
    T value = 0;
    std::memcpy(&value, buffer_ + (i - first_) * sizeof(T), sizeof(T));
    return value;
  }

 private:
  void load(uint64_t i) {
    const size_t n = file_.read(begin_ + i * sizeof(T), buffer_, sizeof buffer_) / sizeof(T);
    if (n == 0) fail("cannot read {}: it ends early", file_.path());
    first_ = i;
    filled_ = n;
  }

  const InputFile& file_;
  uint64_t begin_;
  uint64_t first_ = 0;
  uint64_t filled_ = 0;
  char buffer_[16 << 10] = {};
};

struct Lists {
  TokenType type = TokenType::u16;
  uint64_t sequences = 0;
  uint64_t documents = 0;
  uint64_t lengths = kHeader;  // where each list begins
  uint64_t pointers = 0;
  uint64_t firsts = 0;
};

template <class T>
T number_at(const char* p) {
  T value = 0;
  std::memcpy(&value, p, sizeof value);
  return value;
}

Lists read_header(const InputFile& idx) {
  char h[kHeader] = {};
  if (idx.read(0, h, kHeader) < kHeader || std::memcmp(h, "MMIDIDX\0\0", 9) != 0)
    fail<UsageError>("{} is not a Megatron index", idx.path());
  if (const auto version = number_at<uint64_t>(h + 9); version != 1) fail<UsageError>("{} has version {}, known is 1", idx.path(), version);
  Lists lists;
  lists.type = static_cast<TokenType>(h[17]);
  if (token_bytes(lists.type) == 0)
    fail<UsageError>("{} has ids of type {}, which are not whole numbers", idx.path(), static_cast<int>(h[17]));
  lists.sequences = number_at<uint64_t>(h + 18);
  const auto list = number_at<uint64_t>(h + 26);
  lists.documents = list > 0 ? list - 1 : 0;
  const uint64_t most = idx.size() / 4;  // keeps the sums below from wrapping
  if (lists.sequences > most || list > most || kHeader + 12 * lists.sequences + 8 * list > idx.size())
    fail<UsageError>("{} is cut short: {} sequences and {} documents do not fit its {} bytes", idx.path(), lists.sequences, lists.documents,
                     idx.size());
  lists.pointers = lists.lengths + 4 * lists.sequences;
  lists.firsts = lists.pointers + 8 * lists.sequences;
  return lists;
}

// Scans documents one after the other, with buffers of its own.
class DocumentScan {
 public:
  DocumentScan(const InputFile& bin, const InputFile& idx, const Lists& lists)
      : bin_(bin), lists_(lists), lengths_(idx, lists.lengths), pointers_(idx, lists.pointers), firsts_(idx, lists.firsts) {}

  void scan(uint64_t document, ScanPart& part) {
    ++part.lines;
    std::string problem = locate(document);
    if (problem.empty()) problem = read();
    if (!problem.empty()) return part.add_bad(part.lines, std::move(problem));
    part.entries.push_back({.offset = begin_,
                            .stored = static_cast<uint32_t>(bytes_),
                            .length = static_cast<uint32_t>(tokens_.size()),
                            .hash = hash_tokens(tokens_)});
    part.bytes += 4 * tokens_.size();
    part.empty += tokens_.empty() ? 1 : 0;
  }

 private:
  // Sets begin and bytes of a document; returns what is wrong with it.
  std::string locate(uint64_t document) {
    const int64_t first = firsts_.at(document);
    const int64_t last = firsts_.at(document + 1);
    if (first < 0 || last < first || last > static_cast<int64_t>(lists_.sequences))
      return fmt::format("sequences {} to {} are not there", first, last);
    begin_ = first < last ? static_cast<uint64_t>(pointers_.at(static_cast<uint64_t>(first))) : 0;
    bytes_ = 0;
    for (int64_t s = first; s < last; ++s) {
      const int64_t length = lengths_.at(static_cast<uint64_t>(s));
      if (length < 0) return fmt::format("a sequence of {} tokens", length);
      if (static_cast<uint64_t>(pointers_.at(static_cast<uint64_t>(s))) != begin_ + bytes_)
        return "its sequences are not one behind the other";
      bytes_ += static_cast<uint64_t>(length) * token_bytes(lists_.type);
      if (bytes_ / token_bytes(lists_.type) * 4 > kMaxDocument) return fmt::format("longer than {} tokens", kMaxDocument / 4);
    }
    if (begin_ > bin_.size() || bytes_ > bin_.size() - begin_)
      return fmt::format("reaches beyond the {} bytes of {}", bin_.size(), bin_.path());
    return {};
  }
  std::string read() {
    data_.resize(bytes_);
    bin_.read_exactly(begin_, data_.data(), data_.size());
    tokens_.clear();
    int64_t bad = 0;
    return widen_tokens(lists_.type, data_, tokens_, bad) ? "" : fmt::format("{} is not a token id", bad);
  }

  const InputFile& bin_;
  const Lists& lists_;
  NumberList<int32_t> lengths_;
  NumberList<int64_t> pointers_;
  NumberList<int64_t> firsts_;
  uint64_t begin_ = 0;
  uint64_t bytes_ = 0;
  std::string data_;
  std::vector<int32_t> tokens_;
};

// Bytes that no sequence has belong to another .idx; sequences with more tokens than the .bin holds, to a .bin that was cut.
void check_pair(const ScanJob& job, const Lists& lists) {
  NumberList<int32_t> lengths(*job.second, lists.lengths);
  NumberList<int64_t> pointers(*job.second, lists.pointers);
  const uint64_t size = job.file.size(), each = token_bytes(lists.type);
  uint64_t end = 0, all = 0;
  for (uint64_t s = 0; s < lists.sequences; ++s) {
    const int64_t length = lengths.at(s), pointer = pointers.at(s);
    if (length < 0 || pointer < 0) continue;
    all += static_cast<uint64_t>(length) * each;
    end = std::max(end, static_cast<uint64_t>(pointer) + static_cast<uint64_t>(length) * each);
  }
  if (end < size)
    fail<UsageError>("{} and {} do not belong together: the first has {} bytes, and the sequences of the second end at byte {}",
                     job.file.path(), job.second->path(), size, end);
  if (all <= size) return;
  ScanPart cut;
  cut.add_break(0, fmt::format("it ends at byte {}, and {} has sequences of {} bytes: {} of them ({:.1f}%) are lost", size,
                               job.second->path(), all, all - size, 100.0 * static_cast<double>(all - size) / static_cast<double>(all)));
  job.index.add(cut);
}

}  // namespace

void scan_megatron(const ScanJob& job, Compression /*none*/) {
  const Lists lists = read_header(*job.second);
  job.index.set_layout(Layout::tokens, static_cast<uint64_t>(lists.type));
  check_pair(job, lists);
  uint64_t at = 0;
  const auto next = [&]() -> std::optional<uint64_t> {
    if (at >= lists.documents) return std::nullopt;
    const uint64_t begin = at;
    at += kDocumentsAtOnce;
    job.advance(job.file.size() / (lists.documents + 1) * begin);
    return begin;
  };
  const auto work = [&](uint64_t begin) {
    ScanPart part;
    DocumentScan scan(job.file, *job.second, lists);
    for (uint64_t d = begin; d < std::min(begin + kDocumentsAtOnce, lists.documents); ++d) scan.scan(d, part);
    return part;
  };
  const auto take = [&](const ScanPart& part) { take_part(job, part); };
  Pipeline(next, work, take).run(job.options.threads);
}

}  // namespace hlat::reader
