#include "data/inspect.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "base/error.h"

namespace hlat {
namespace {

// Builds the report from rows as they come.
class Walk {
 public:
  explicit Walk(const Dataset& data) : data_(data), mixture_(data.train()), current_(static_cast<size_t>(data.identity().lanes)) {
    for (const std::string& name : mixture_.names) report_.sources.push_back({.name = name, .lengths = {}});
    bytes_.resize(mixture_.names.size());
    whole_tokens_.resize(mixture_.names.size());
  }

  void begin_step() { in_step_.clear(); }

  void add(size_t lane, const std::vector<int32_t>& row, const std::vector<RowPart>& parts) {
    in_row_.clear();
    const int64_t served = static_cast<int64_t>(row.size()) - 1;  // the last token comes again, as the next row's first
    for (const RowPart& p : parts) {
      SourceReport& s = report_.sources[p.source];
      const int64_t count = std::min(p.begin + p.count, served) - p.begin;
      if (p.starts && p.begin == 0 && report_.steps > 0)
        note(p, false);  // it was met as the last token of the row before
      else if (p.starts)
        note(p, true);
      for (int64_t i = p.begin; i < p.begin + count; ++i) s.fallback += data_.tokenizer().is_fallback(row[static_cast<size_t>(i)]) ? 1 : 0;
      s.tokens += static_cast<uint64_t>(count);
      report_.tokens += static_cast<uint64_t>(count);
      measure(lane, p, count);
    }
    ++report_.rows;
  }

  DataReport take(int64_t steps, double seconds) {
    report_.steps = steps;
    report_.seconds = seconds;
    for (size_t i = 0; i < report_.sources.size(); ++i) {
      SourceReport& s = report_.sources[i];
      std::sort(s.lengths.begin(), s.lengths.end());
      s.bytes_per_token =
          bytes_[i] > 0 ? static_cast<double>(bytes_[i]) / static_cast<double>(whole_tokens_[i]) : std::numeric_limits<double>::quiet_NaN();
    }
    return std::move(report_);
  }

  void end_step() { ++report_.steps; }

 private:
  // A document begins, for the first time or once more seen at the border of two rows.
  void note(const RowPart& p, bool fresh) {
    const uint64_t hash = mixture_.sources[p.source]->hash(p.document);
    const bool in_row = !in_row_.insert(hash).second;
    if (!fresh) return;
    ++report_.documents;
    ++report_.sources[p.source].documents;
    report_.repeats_in_row += in_row ? 1 : 0;
    report_.repeats_in_step += in_step_.insert(hash).second ? 0 : 1;
    report_.repeats += seen_.insert(hash).second ? 0 : 1;
  }

  void measure(size_t lane, const RowPart& p, int64_t count) {
    Length& l = current_[lane];
    if (p.starts) l = {.tokens = 0, .whole = true};
    l.tokens += static_cast<uint64_t>(count);
    if (!p.ends || count < p.count || !l.whole) return;
    report_.sources[p.source].lengths.push_back(l.tokens);
    whole_tokens_[p.source] += l.tokens;
    if (p.source < data_.files().size()) bytes_[p.source] += data_.files()[p.source]->text_bytes(p.document);
  }

  struct Length {
    uint64_t tokens = 0;
    bool whole = false;  // its start was seen
  };
  const Dataset& data_;
  const Mixture& mixture_;
  DataReport report_;
  std::vector<Length> current_;  // document under way, by lane
  std::unordered_set<uint64_t> in_row_, in_step_, seen_;
  std::vector<uint64_t> bytes_, whole_tokens_;  // of complete documents, by source
};

std::string text_of(const Dataset& data, std::span<const int32_t> ids) {
  if (!ids.empty() && data.special().bos && ids.front() == *data.special().bos) ids = ids.subspan(1);
  if (!ids.empty() && ids.back() == data.special().eos) ids = ids.first(ids.size() - 1);
  return data.tokenizer().decode(ids);
}

}  // namespace

double SourceReport::mean_length() const {
  return lengths.empty()
             ? 0
             : static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), uint64_t{0})) / static_cast<double>(lengths.size());
}

uint64_t SourceReport::percentile(double share) const {
  return lengths.empty() ? 0 : lengths[static_cast<size_t>(share * static_cast<double>(lengths.size() - 1))];
}

DataReport inspect_data(const Dataset& data, uint64_t tokens) {
  const DataIdentity id = data.identity();
  Lanes lanes(data.train(), id.lanes, id.seq_len);
  Readers readers(data.train());
  Walk walk(data);
  std::vector<int32_t> row(static_cast<size_t>(id.seq_len) + 1);
  const auto start = std::chrono::steady_clock::now();
  const auto per_step = static_cast<uint64_t>(id.lanes * id.seq_len);
  const auto steps = static_cast<int64_t>(std::max<uint64_t>(1, (tokens + per_step - 1) / per_step));
  for (int64_t step = 0; step < steps; ++step) {
    walk.begin_step();
    for (int64_t lane = 0; lane < id.lanes; ++lane) {
      std::vector<RowPart> parts;
      lanes.read_row(lane, readers, row.data(), &parts);
      walk.add(static_cast<size_t>(lane), row, parts);
    }
    walk.end_step();
  }
  return walk.take(steps, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

std::vector<ShownRow> show_rows(const Dataset& data, int64_t step, int64_t count) {
  const DataIdentity id = data.identity();
  Lanes lanes(data.train(), id.lanes, id.seq_len);
  Readers readers(data.train());
  std::vector<int32_t> row(static_cast<size_t>(id.seq_len) + 1);
  std::vector<ShownRow> rows;
  for (int64_t lane = 0; lane < std::min(count, id.lanes); ++lane) {
    for (int64_t s = 1; s < step; ++s) lanes.read_row(lane, readers, row.data());
    std::vector<RowPart> parts;
    lanes.read_row(lane, readers, row.data(), &parts);
    ShownRow shown{.step = step, .lane = lane, .parts = {}};
    for (const RowPart& p : parts) {
      const std::span<const int32_t> ids = std::span(row).subspan(static_cast<size_t>(p.begin), static_cast<size_t>(p.count));
      shown.parts.push_back({.source = data.train().names[p.source],
                             .document = p.document,
                             .tokens = p.count,
                             .starts = p.starts,
                             .ends = p.ends,
                             .text = text_of(data, ids)});
    }
    rows.push_back(std::move(shown));
  }
  return rows;
}

}  // namespace hlat
