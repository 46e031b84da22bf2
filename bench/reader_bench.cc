// Rates of the readers on one thread: the scan that makes an index, and reading documents at random. Documents are of about
// 5 KB of words, with an escape in every line of text. The files lie in the page cache: this measures the code, not the disk.
#include <benchmark/benchmark.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "base/rng.h"
#include "data/reader/document_file.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDocuments = 20'000;

std::string make_lines() {
  std::string lines;
  RandomStream random({.seed = 1, .stream = 0, .purpose = Noise::data, .step = 0});
  for (size_t d = 0; d < kDocuments; ++d) {
    lines += R"({"id": "document )" + std::to_string(d) + R"(", "text": ")";
    const size_t end = lines.size() + 1000 + random.below(8000);
    while (lines.size() < end) {
      for (uint64_t letters = 1 + random.below(9); letters > 0; --letters) lines += static_cast<char>('a' + random.below(26));
      lines += random.below(12) == 0 ? "\\n" : " ";
    }
    lines += "\"}\n";
  }
  return lines;
}

std::string compress(const std::string& name, const std::string& lines) {
  std::string out;
  if (name.ends_with(".zst")) {
    out.resize(ZSTD_compressBound(lines.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), lines.data(), lines.size(), 3));
  } else if (name.ends_with(".gz")) {
    z_stream z{};
    if (deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflateInit2");
    out.resize(deflateBound(&z, lines.size()));
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(lines.data()));
    z.avail_in = static_cast<uInt>(lines.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    deflate(&z, Z_FINISH);
    out.resize(z.total_out);
    deflateEnd(&z);
  } else {
    out = lines;
  }
  return out;
}

// A folder with one file, made when first asked for and removed at the end.
class DataFile {
 public:
  explicit DataFile(const std::string& name) {
    std::string folder = (fs::temp_directory_path() / "hlat_bench_XXXXXX").string();
    if (!mkdtemp(folder.data())) throw std::runtime_error("cannot make " + folder);
    folder_ = folder;
    const std::string lines = make_lines();
    bytes_ = lines.size();
    std::ofstream(path(name), std::ios::binary) << compress(name, lines);
  }
  ~DataFile() { fs::remove_all(folder_); }
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void forget_index() const { fs::remove_all(folder_ / ".hlat"); }
  uint64_t bytes() const { return bytes_; }  // of JSON

 private:
  fs::path folder_;
  uint64_t bytes_ = 0;
};

void scan(benchmark::State& state, const std::string& name) {
  const DataFile data(name);
  for (auto _ : state) {
    benchmark::DoNotOptimize(open_documents(data.path(name), {})->documents());
    state.PauseTiming();
    data.forget_index();
    state.ResumeTiming();
  }
  state.SetBytesProcessed(static_cast<int64_t>(data.bytes()) * state.iterations());
}

void read_at_random(benchmark::State& state, const std::string& name) {
  const DataFile data(name);
  const auto file = open_documents(data.path(name), {});
  RandomStream random({.seed = 2, .stream = 0, .purpose = Noise::data, .step = 0});
  std::string text;
  int64_t bytes = 0;
  for (auto _ : state) {
    file->text(random.below(file->documents()), text);
    bytes += static_cast<int64_t>(text.size());
  }
  state.SetBytesProcessed(bytes);
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(scan, jsonl, "a.jsonl")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(scan, jsonl_gz, "a.jsonl.gz")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(scan, jsonl_zst, "a.jsonl.zst")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_at_random, jsonl, "a.jsonl")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(read_at_random, jsonl_zst, "a.jsonl.zst")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hlat
