// The reports of data/inspect.h, for people and for machines.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
#include "data/inspect.h"

namespace hlat {

std::string report_text(const DataReport& r) {
  const auto percent = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::string s = fmt::format("the first {} steps: {} rows, {} tokens\n\n", r.steps, r.rows, r.tokens);
  s += fmt::format("{:<24} {:>10} {:>12} {:>8} | {:>9} {:>7} {:>7} {:>7} {:>9} | {:>10} {:>9}\n", "source", "documents", "tokens", "share",
                   "mean", "5 %", "50 %", "95 %", "longest", "bytes/tok", "fallback");
  for (const SourceReport& l : r.sources)
    s += fmt::format("{:<24} {:>10} {:>12} {:>7.2f}% | {:>9.1f} {:>7} {:>7} {:>7} {:>9} | {:>10} {:>8.3f}%\n", l.name, l.documents,
                     l.tokens, percent(l.tokens, r.tokens), l.mean_length(), l.percentile(0.05), l.percentile(0.5), l.percentile(0.95),
                     l.percentile(1), std::isnan(l.bytes_per_token) ? "" : fmt::format("{:.2f}", l.bytes_per_token),
                     percent(l.fallback, l.tokens));
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
                            {"fallback_tokens", l.fallback},
                            {"bytes_per_token", l.bytes_per_token},
                            {"tokens_per_document",
                             {{"mean", l.mean_length()},
                              {"p5", l.percentile(0.05)},
                              {"p50", l.percentile(0.5)},
                              {"p95", l.percentile(0.95)},
                              {"max", l.percentile(1)}}}});
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
