#include "data/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>

#include "base/format.h"

namespace hlat {
namespace {

// Builds the report from rows as they come.
class Walk {
 public:
  explicit Walk(const Dataset& data)
      : data_(data), mixture_(data.train()), current_(static_cast<size_t>(data.identity().lanes) * data.train().sources.size()) {
    for (const std::string& name : mixture_.names) report_.sources.push_back({.name = name, .lengths = {}});
    bytes_.resize(mixture_.names.size());
    whole_tokens_.resize(mixture_.names.size());
  }

  void begin_step() {
    in_step_.clear();
    const std::vector<double>& weights = mixture_.segments[mixture_.segment_at(report_.steps + 1)].weights;
    for (size_t i = 0; i < weights.size(); ++i) report_.sources[i].wanted += weights[i];
  }

  void add(size_t lane, const std::vector<int32_t>& row, const std::vector<RowPart>& parts) {
    in_row_.clear();
    const int64_t served = static_cast<int64_t>(row.size()) - 1;  // the last token comes again, as the next row's first
    for (const RowPart& p : parts) {
      SourceReport& s = report_.sources[p.source];
      const int64_t count = std::min(p.begin + p.count, served) - p.begin;
      Length& length = current_[lane * mixture_.sources.size() + p.source];
      if (p.starts && p.begin == 0 && length.met)
        note(p, false);  // it was met as the last token of the lane's row of this source before
      else if (p.starts)
        note(p, true);
      for (int64_t i = p.begin; i < p.begin + count; ++i) s.fallback += data_.tokenizer().is_fallback(row[static_cast<size_t>(i)]) ? 1 : 0;
      s.tokens += static_cast<uint64_t>(count);
      report_.tokens += static_cast<uint64_t>(count);
      measure(length, p, count);
    }
    ++report_.rows;
  }

  DataReport take(int64_t steps, double seconds) {
    report_.steps = steps;
    report_.seconds = seconds;
    for (size_t i = 0; i < report_.sources.size(); ++i) {
      SourceReport& s = report_.sources[i];
      s.wanted /= static_cast<double>(steps);
      std::sort(s.lengths.begin(), s.lengths.end());
      s.bytes_per_token =
          bytes_[i] > 0 ? static_cast<double>(bytes_[i]) / static_cast<double>(whole_tokens_[i]) : std::numeric_limits<double>::quiet_NaN();
    }
    return std::move(report_);
  }

  void end_step() { ++report_.steps; }

 private:
  struct Length {
    uint64_t tokens = 0;
    uint64_t document = 0;
    bool whole = false;  // its start was seen
    bool met = false;    // a row of this source came before
  };
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

  void measure(Length& l, const RowPart& p, int64_t count) {
    l.met = true;
    if (p.starts) l = {.tokens = 0, .document = p.document, .whole = true, .met = true};
    if (p.document != l.document) l.whole = false;  // begun by another lane
    l.tokens += static_cast<uint64_t>(count);
    if (!p.ends || count < p.count || !l.whole) return;
    report_.sources[p.source].lengths.push_back(l.tokens);
    whole_tokens_[p.source] += l.tokens;
    l.whole = false;
    if (p.source < data_.files().size()) bytes_[p.source] += data_.files()[p.source]->text_bytes(p.document);
  }

  const Dataset& data_;
  const Mixture& mixture_;
  DataReport report_;
  std::vector<Length> current_;  // document under way, by lane and source
  std::unordered_set<uint64_t> in_row_, in_step_, seen_;
  std::vector<uint64_t> bytes_, whole_tokens_;  // of complete documents, by source
};

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
                             .text = text_of(data.tokenizer(), data.special(), ids)});
    }
    rows.push_back(std::move(shown));
  }
  return rows;
}

std::string report_text(const DataReport& r) {
  const auto percent = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::string s = fmt::format("the first {} steps: {} rows, {} tokens\n\n", r.steps, r.rows, r.tokens);
  s += fmt::format("{:<24} {:>10} {:>12} {:>8} {:>8} | {:>9} {:>7} {:>7} {:>7} {:>9} | {:>10} {:>9}\n", "source", "documents", "tokens",
                   "wanted", "share", "mean", "5 %", "50 %", "95 %", "longest", "bytes/tok", "fallback");
  for (const SourceReport& l : r.sources) {
    const bool known = !l.lengths.empty();
    const auto length = [&](double share) { return known ? fmt::format("{}", l.percentile(share)) : "-"; };
    s += fmt::format("{:<24} {:>10} {:>12} {:>7.2f}% {:>7.2f}% | {:>9} {:>7} {:>7} {:>7} {:>9} | {:>10} {:>8.3f}%\n", l.name, l.documents,
                     l.tokens, 100 * l.wanted, percent(l.tokens, r.tokens), known ? fmt::format("{:.1f}", l.mean_length()) : "-",
                     length(0.05), length(0.5), length(0.95), length(1),
                     std::isnan(l.bytes_per_token) ? "-" : fmt::format("{:.2f}", l.bytes_per_token), percent(l.fallback, l.tokens));
  }
  s += "(tokens per document: of documents that were read whole)\n\n";
  s += "packing: every position of every row holds a token, none is lost\n";
  s += fmt::format("repeats: of {} documents {} came again in their row, {} in their step, {} in all that was walked\n", r.documents,
                   r.repeats_in_row, r.repeats_in_step, r.repeats);
  s += fmt::format("speed: {} tokens/s, reading, tokenizing and packing on one thread\n",
                   format_count(static_cast<double>(r.tokens) / r.seconds));
  return s;
}

std::string rows_text(const std::vector<ShownRow>& rows) {
  std::string s;
  for (const ShownRow& r : rows) {
    s += fmt::format("---- step {}, lane {}\n", r.step, r.lane);
    for (const ShownRow::Part& p : r.parts) {
      s += fmt::format("<{} {}{}, {} tokens> ", p.source, p.document, p.starts ? "" : " goes on", p.tokens);
      s += p.text + (p.ends ? " <end>\n" : " <cut>\n");
    }
  }
  return s;
}

namespace {

nlohmann::ordered_json lengths_json(const SourceReport& l) {
  if (l.lengths.empty()) return {};  // null: no document was read whole
  return {{"mean", l.mean_length()},
          {"p5", l.percentile(0.05)},
          {"p50", l.percentile(0.5)},
          {"p95", l.percentile(0.95)},
          {"max", l.percentile(1)}};
}

}  // namespace

nlohmann::ordered_json report_json(const DataReport& r) {
  nlohmann::ordered_json j{{"steps", r.steps},
                           {"rows", r.rows},
                           {"tokens", r.tokens},
                           {"tokens_lost", 0},
                           {"documents", r.documents},
                           {"repeats_in_row", r.repeats_in_row},
                           {"repeats_in_step", r.repeats_in_step},
                           {"repeats", r.repeats},
                           {"tokens_per_s", static_cast<double>(r.tokens) / r.seconds}};
  for (const SourceReport& l : r.sources)
    j["sources"].push_back({{"name", l.name},
                            {"documents", l.documents},
                            {"tokens", l.tokens},
                            {"share", r.tokens == 0 ? 0.0 : static_cast<double>(l.tokens) / static_cast<double>(r.tokens)},
                            {"wanted_share", l.wanted},
                            {"fallback_tokens", l.fallback},
                            {"bytes_per_token", l.bytes_per_token},
                            {"tokens_per_document", lengths_json(l)}});
  return j;
}

nlohmann::ordered_json rows_json(const std::vector<ShownRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ShownRow& r : rows) {
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (const ShownRow::Part& p : r.parts)
      parts.push_back(
          {{"source", p.source}, {"document", p.document}, {"tokens", p.tokens}, {"starts", p.starts}, {"ends", p.ends}, {"text", p.text}});
    list.push_back({{"step", r.step}, {"lane", r.lane}, {"parts", std::move(parts)}});
  }
  return list;
}

}  // namespace hlat
