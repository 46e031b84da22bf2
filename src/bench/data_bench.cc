#include "bench/data_bench.h"

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/format.h"
#include "data/train_batches.h"

namespace hlat {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Amount {
  uint64_t bytes = 0, tokens = 0;
};

// Each thread takes documents in the order of training, one by one, until the time is over; `read` says how much each was.
// The first error of a thread comes out here.
template <class MakeRead>
std::pair<double, double> rate(const Dataset& data, int threads, double seconds, const MakeRead& make_read) {
  const Mixture& m = data.train();
  std::atomic<uint64_t> next = 0, bytes = 0, tokens = 0;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(threads));
  const auto start = Clock::now();
  const auto work = [&](size_t thread) {
    try {
      auto read = make_read();
      do {  // at least one, however late the thread starts
        const uint64_t i = next++;
        const size_t source = i % m.sources.size();
        const uint64_t place = i / m.sources.size(), documents = m.sources[source]->documents();
        const uint64_t epoch = documents == 0 ? 0 : place / documents;
        const Amount a = read(source, m.document_at(source, epoch, place - epoch * documents));
        bytes += a.bytes;
        tokens += a.tokens;
      } while (seconds_since(start) < seconds);
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  std::vector<std::thread> list;
  for (size_t t = 0; t < static_cast<size_t>(threads); ++t) list.emplace_back(work, t);
  for (std::thread& t : list) t.join();
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
  const double s = seconds_since(start);
  return {static_cast<double>(bytes) / s, static_cast<double>(tokens) / s};
}

double loader_rate(const Dataset& data, int threads, double seconds) {
  const DataIdentity id = data.identity();
  LoaderOptions options = data.loader_options();
  options.workers = threads;
  TrainBatches batches(id, data.train(), {.begin = 0, .count = id.lanes}, options);
  Batch row(1, id.seq_len);
  // What lies ready at the start was read before the clock ran.
  for (int64_t i = 0; i < options.prefetch * id.lanes; ++i) batches.read(i % id.lanes, row);
  const auto start = Clock::now();
  int64_t rows = 0;
  do batches.read(rows++ % id.lanes, row);
  while (seconds_since(start) < seconds);
  return static_cast<double>(rows * id.seq_len) / seconds_since(start);
}

DataBench::Line measure(const Dataset& data, int threads, double seconds) {
  DataBench::Line line{.threads = threads};
  const auto& files = data.files();
  if (!files.empty()) {
    const auto text = [&] {
      return [&, buffer = std::string()](size_t source, uint64_t document) mutable {
        files[source]->read_text(document, buffer);
        return Amount{.bytes = buffer.size(), .tokens = 0};
      };
    };
    line.read_bytes_per_s = rate(data, threads, seconds, text).first;
  }
  const auto tokenize = [&] {
    return [&, readers = std::make_shared<Readers>(data.train()), piece = Document()](size_t source, uint64_t document) mutable {
      Amount a{.bytes = files.empty() ? 0 : files[source]->text_bytes(document), .tokens = 0};
      for (uint64_t from = 0;;) {
        piece.tokens.clear();
        from = (*readers)[source].read(document, from, DocumentReader::kEnd, piece);
        a.tokens += piece.tokens.size();
        if (from == 0) return a;
      }
    };
  };
  std::tie(line.tokenize_bytes_per_s, line.tokenize_tokens_per_s) = rate(data, threads, seconds, tokenize);
  line.loader_tokens_per_s = loader_rate(data, threads, seconds);
  return line;
}

}  // namespace

DataBench bench_data(const Dataset& data, int most, double seconds) {
  DataBench bench{.data = data.describe(), .lines = {}};
  for (int threads = 1; threads < most; threads *= 2) bench.lines.push_back(measure(data, threads, seconds));
  bench.lines.push_back(measure(data, most, seconds));
  return bench;
}

std::string data_bench_text(const DataBench& bench) {
  std::string s = fmt::format("{}\n\n{:>7} {:>12} {:>14} {:>14} {:>14} {:>16} {:>9}\n", bench.data, "threads", "read MB/s", "tokenize MB/s",
                              "per thread", "tokens/s", "loader tokens/s", "scaling");
  for (const DataBench::Line& l : bench.lines)
    s += fmt::format("{:>7} {:>12.1f} {:>14.1f} {:>14.1f} {:>14} {:>16} {:>8.2f}x\n", l.threads, l.read_bytes_per_s * 1e-6,
                     l.tokenize_bytes_per_s * 1e-6, l.tokenize_bytes_per_s * 1e-6 / l.threads, format_count(l.tokenize_tokens_per_s),
                     format_count(l.loader_tokens_per_s), l.loader_tokens_per_s / bench.lines.front().loader_tokens_per_s);
  return s + "(MB of text; tokenize: documents read and tokenized; loader: rows as a step takes them; scaling: of the loader)\n";
}

nlohmann::ordered_json data_bench_json(const DataBench& bench) {
  nlohmann::ordered_json j{{"data", bench.data}};
  for (const DataBench::Line& l : bench.lines)
    j["threads"].push_back({{"threads", l.threads},
                            {"read_bytes_per_s", l.read_bytes_per_s},
                            {"tokenize_bytes_per_s", l.tokenize_bytes_per_s},
                            {"tokenize_tokens_per_s", l.tokenize_tokens_per_s},
                            {"loader_tokens_per_s", l.loader_tokens_per_s}});
  return j;
}

}  // namespace hlat
