#include "data/ledger_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace hlat {

nlohmann::ordered_json ledger_json(const Ledger& ledger, int64_t step) {
  using LedgerJson = nlohmann::ordered_json;
  const auto lines = [](const std::vector<Ledger::Line>& list, bool weights) {
    LedgerJson out = LedgerJson::array();
    for (const Ledger::Line& l : list)
      out.push_back({{"source", l.source},
                     {"documents", l.documents},
                     {"tokens", l.tokens},
                     {"epochs", std::isnan(l.epochs) ? LedgerJson() : LedgerJson(l.epochs)},
                     {"weight", weights ? LedgerJson(l.weight) : LedgerJson()},
                     {"open", l.open},
                     {"unread", l.unread}});
    return out;
  };
  LedgerJson segments = LedgerJson::array();
  for (const Ledger::Part& part : ledger.segments) segments.push_back({{"from_step", part.from_step}, {"lines", lines(part.lines, true)}});
  return {{"step", step},
          {"total", lines(ledger.total, false)},
          {"segments", std::move(segments)},
          {"repeats", ledger.repeats},
          {"skipped_rows", ledger.skipped_rows},
          {"skipped_tokens", ledger.skipped_tokens}};
}

}  // namespace hlat
