#include "data/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hlat {

uint64_t Ledger::tokens() const {
  uint64_t sum = 0;
  for (const Line& l : total) sum += l.tokens;
  return sum;
}

uint64_t Ledger::documents() const {
  uint64_t sum = 0;
  for (const Line& l : total) sum += l.documents;
  return sum;
}

namespace {

// The size of what is left of a lane's share of its current document.
double size_left(const Mixture& mixture, size_t source, const Cursor& at) {
  if (at.position == Cursor::kNone || mixture.sources[source] == nullptr || mixture.sources[source]->documents() == 0) return 0;
  return std::max(0.0, static_cast<double>(at.end - at.piece) - (at.read() - static_cast<double>(at.behind)));
}

}  // namespace

Ledger ledger_of(const Mixture& mixture, const std::vector<LaneState>& lanes, const SumOver& sum) {
  const size_t sources = mixture.sources.size();
  // Below 2^53 these sums are exact.
  const auto all = [&](const auto& of_lane) {
    uint64_t here = 0;
    for (const LaneState& l : lanes) here += of_lane(l);
    return static_cast<uint64_t>(sum(static_cast<double>(here)));
  };
  const auto all_parts = [&](const auto& of_lane) {
    double here = 0;
    for (const LaneState& l : lanes) here += of_lane(l);
    return sum(here);
  };
  const int64_t step = lanes.empty() ? 0 : static_cast<int64_t>(lanes.front().rows);
  const std::vector<double>& weights = mixture.segments[mixture.segment_at(std::max<int64_t>(1, step))].weights;
  Ledger ledger;
  std::vector<double> read(sources);
  for (size_t s = 0; s < sources; ++s) {
    const DocumentSource* source = mixture.sources[s];
    const bool ends = source != nullptr && source->documents() > 0;
    read[s] = all_parts([&](const LaneState& l) { return l.cursors[s].read(); });
    Ledger::Line line{.source = mixture.names[s]};
    line.epochs = ends ? read[s] / split_extent(mixture, s) : std::numeric_limits<double>::quiet_NaN();
    const auto left = [&](const LaneState& l) { return weights[s] > 0 ? 0.0 : size_left(mixture, s, l.cursors[s]); };
    line.open = all([&](const LaneState& l) { return left(l) > 0 ? 1 : 0; });
    line.unread = all_parts(left);  // in places of the documents so far
    ledger.total.push_back(std::move(line));
  }
  for (size_t g = 0; g < mixture.segments.size(); ++g) {
    Ledger::Part part{.from_step = mixture.segments[g].from_step, .lines = {}};
    uint64_t tokens = 0;
    for (size_t s = 0; s < sources; ++s) {
      const size_t cell = g * sources + s;
      const auto count = [&](const LaneState& l) { return cell < l.counts.size() ? l.counts[cell] : LaneCount{}; };
      Ledger::Line line{.source = mixture.names[s],
                        .documents = all([&](const LaneState& l) { return count(l).documents; }),
                        .tokens = all([&](const LaneState& l) { return count(l).tokens; }),
                        .epochs = std::numeric_limits<double>::quiet_NaN(),
                        .weight = mixture.segments[g].weights[s],
                        .open = 0,
                        .unread = 0};
      tokens += line.tokens;
      ledger.total[s].documents += line.documents;
      ledger.total[s].tokens += line.tokens;
      part.lines.push_back(std::move(line));
    }
    if (tokens > 0) ledger.segments.push_back(std::move(part));
  }
  for (size_t s = 0; s < sources; ++s) {
    Ledger::Line& l = ledger.total[s];
    l.unread = read[s] > 0 ? std::round(l.unread * static_cast<double>(l.tokens) / read[s]) : 0;
  }
  ledger.repeats = all([](const LaneState& l) { return l.repeats; });
  return ledger;
}

std::string ledger_text(const Ledger& ledger) {
  const auto share = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::string text = fmt::format("{:<24} {:>12} {:>15} {:>8} {:>8} {:>10}\n", "source", "documents", "tokens", "share", "weight", "epochs");
  const auto row = [&](const Ledger::Line& l, uint64_t tokens, bool weight) {
    text += fmt::format("{:<24} {:>12} {:>15} {:>7.2f}% {:>8} {:>10}\n", l.source, l.documents, l.tokens, share(l.tokens, tokens),
                        weight ? fmt::format("{:.2f}%", 100 * l.weight) : "", std::isnan(l.epochs) ? "" : fmt::format("{:.3f}", l.epochs));
  };
  const bool one = ledger.segments.size() == 1;
  for (size_t s = 0; s < ledger.total.size(); ++s) {
    Ledger::Line l = ledger.total[s];
    if (one) l.weight = ledger.segments[0].lines[s].weight;
    row(l, ledger.tokens(), one);
  }
  for (size_t g = 0; !one && g < ledger.segments.size(); ++g) {
    uint64_t tokens = 0;
    for (const Ledger::Line& l : ledger.segments[g].lines) tokens += l.tokens;
    text += fmt::format("from step {}\n", ledger.segments[g].from_step);
    for (Ledger::Line l : ledger.segments[g].lines) l.source = "  " + l.source, row(l, tokens, true);
  }
  for (const Ledger::Line& l : ledger.total)
    if (l.open > 0)
      text += fmt::format("{}: {} documents lie open with about {:.0f} tokens unread; a stage that reads {} again goes on with them\n",
                          l.source, l.open, l.unread, l.source);
  text += fmt::format("{} documents, {} tokens, none lost to packing; {} documents came twice in one row\n", ledger.documents(),
                      ledger.tokens(), ledger.repeats);
  if (ledger.skipped_rows > 0)
    text += fmt::format("{} rows with {} tokens were skipped: read, and not trained on\n", ledger.skipped_rows, ledger.skipped_tokens);
  return text;
}

}  // namespace hlat
