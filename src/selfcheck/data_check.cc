#include "selfcheck/data_check.h"

#include <algorithm>
#include <map>

#include "base/rng.h"
#include "comm/host_exchange.h"
#include "data/train_batches.h"
#include "runtime/gather_json.h"
#include "runtime/open_data.h"

namespace hlat {

namespace {

constexpr int64_t kRowTokens = 128, kLeastRows = 8, kDataSteps = 2;
constexpr double kMostRepeated = 0.25;  // share of the rows: small data comes round soon

Config config_of_data(const SelfCheckRun& run) {
  Config c = run.given;
  const int64_t rows = run.config.train.micro_batch * c.parallel.dp;
  c.train.seq_len = std::min(c.train.seq_len, kRowTokens);
  c.train.micro_batch = run.config.train.micro_batch;
  c.train.global_batch = std::max(run.config.train.global_batch, (kLeastRows + rows - 1) / rows * rows);
  return c;
}

uint64_t hash_of_row(const Batch& b, int64_t row) {
  uint64_t hash = 0;
  for (const std::vector<int32_t>* ids : {&b.inputs, &b.targets}) {
    const char* begin = reinterpret_cast<const char*>(ids->data() + row * b.seq_len);
    hash = hash * 31 + hash_name({begin, static_cast<size_t>(b.seq_len) * sizeof(int32_t)});
  }
  return hash;
}

std::vector<RowHash> read_rows(const Config& c, const Dataset& data, Part own, int rank, fault::Injector* faults) {
  TrainBatches batches(data, own);
  Batch batch(c.train.micro_batch, c.train.seq_len);
  std::vector<RowHash> rows;
  for (int64_t step = 1; step <= kDataSteps; ++step) {
    if (faults != nullptr) faults->at_step(step);
    for (int64_t first = 0; first < own.count; first += batch.rows) {
      batches.read(first, batch);
      if (faults != nullptr) faults->rows(first / batch.rows, batch.seq_len, batch.inputs, batch.targets);
      for (int64_t r = 0; r < batch.rows; ++r)
        rows.push_back({.step = step, .row = own.begin + first + r, .hash = hash_of_row(batch, r), .rank = rank});
    }
  }
  return rows;
}

std::vector<RowHash> gather_rows(Comm& world, const std::vector<RowHash>& own) {
  nlohmann::json packed = nlohmann::json::array();
  for (const RowHash& r : own) packed.push_back({r.step, r.row, r.hash, r.rank});
  std::vector<RowHash> all;
  for (const auto& of_rank : gather_json(world, packed))
    for (const auto& j : of_rank) all.push_back({.step = j[0], .row = j[1], .hash = j[2], .rank = j[3]});
  return all;
}

}  // namespace

std::string other_rows(const SelfCheckRun& run, const std::vector<RowHash>& read, const std::vector<RowHash>& one) {
  std::map<std::pair<int64_t, int64_t>, uint64_t> right;
  for (const RowHash& r : one) right[{r.step, r.row}] = r.hash;
  int64_t other = 0;
  std::string first;
  for (const RowHash& r : read) {
    const auto found = right.find({r.step, r.row});
    if (found != right.end() && found->second == r.hash) continue;
    if (other++ == 0) first = fmt::format("row {} of step {} on {}", r.row, r.step, run.rank_words(r.rank));
  }
  return other == 0 ? "" : fmt::format("{} of {} rows are not those that one rank alone reads, the first is {}", other, read.size(), first);
}

std::vector<std::pair<RowHash, RowHash>> repeated_rows(const std::vector<RowHash>& read) {
  std::map<uint64_t, RowHash> seen;
  std::vector<std::pair<RowHash, RowHash>> repeated;
  for (const RowHash& r : read) {
    const auto [it, fresh] = seen.try_emplace(r.hash, r);
    const bool same = it->second.step == r.step && it->second.row == r.row;  // of the last stage, which reads them too
    if (!fresh && !same) repeated.emplace_back(it->second, r);
  }
  return repeated;
}

ModelVerdict check_data(const SelfCheckRun& run, CheckModel& model) {
  const Config c = config_of_data(run);
  if (c.data.sources.empty() && !c.data.embedded) return ModelVerdict::none("the config names no data");
  const std::unique_ptr<Dataset> data = open_data(c, run.world, run.on_host, run.threads);
  const MeshShape shape = mesh_shape(c.parallel);
  const Part whole{.begin = 0, .count = c.train.global_batch}, own = part_of(whole.count, run.coord(run.rank()).dp, shape.dp);
  std::vector<RowHash> mine, one;
  if (data) mine = read_rows(c, *data, own, run.rank(), model.faults());
  if (run.rank() == 0) one = read_rows(c, *data, whole, 0, nullptr);
  const std::vector<RowHash> read = gather_rows(run.world, mine);
  one = gather_rows(run.world, one);
  const auto repeated = repeated_rows(read);
  const double share = static_cast<double>(repeated.size()) / static_cast<double>(read.size());
  if (share > kMostRepeated) {
    const auto& [a, b] = repeated.front();
    return ModelVerdict::failed(fmt::format("{} of {} rows were there before: row {} of step {} is row {} of step {}", repeated.size(),
                                            read.size(), b.row, b.step, a.row, a.step));
  }
  if (const std::string words = other_rows(run, read, one); !words.empty()) return ModelVerdict::failed(words);
  return ModelVerdict::ok(fmt::format("{} rows of {} tokens in {} steps are those that one rank alone reads; {} repeated", one.size(),
                                      c.train.seq_len, kDataSteps, repeated.empty() ? "none" : std::to_string(repeated.size())));
}

}  // namespace hlat
