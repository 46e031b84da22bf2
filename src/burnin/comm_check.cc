#include "burnin/comm_check.h"

#include <fmt/format.h>

#include "base/format.h"
#include "burnin/comm_verdict.h"

namespace hlat {

namespace {

nlohmann::json packed_comm(const CommMeasured& m) {
  nlohmann::json j{{"transport", m.transport},
                   {"times", nlohmann::json::array()},
                   {"links", nlohmann::json::array()},
                   {"wrong", nlohmann::json::array()}};
  for (const CommTime& t : m.times) j["times"].push_back({t.axis, t.group, t.ranks, static_cast<int>(t.op), t.bytes, t.typical, t.best});
  for (const LinkTime& l : m.links) j["links"].push_back({l.axis, l.a, l.b, l.typical, l.best});
  for (const WrongData& w : m.wrong)
    j["wrong"].push_back({w.axis, static_cast<int>(w.op), w.bytes, w.element, w.rank, w.from, w.got, w.known});
  return j;
}

CommMeasured unpacked_comm(const nlohmann::json& j) {
  CommMeasured m;
  m.transport = j["transport"];
  for (const auto& t : j["times"])
    m.times.push_back({.axis = t[0],
                       .group = t[1],
                       .ranks = t[2],
                       .op = static_cast<Collective>(t[3].get<int>()),
                       .bytes = t[4],
                       .typical = t[5],
                       .best = t[6]});
  for (const auto& l : j["links"]) m.links.push_back({.axis = l[0], .a = l[1], .b = l[2], .typical = l[3], .best = l[4]});
  for (const auto& w : j["wrong"])
    m.wrong.push_back({.axis = w[0],
                       .op = static_cast<Collective>(w[1].get<int>()),
                       .bytes = w[2],
                       .element = w[3],
                       .rank = w[4],
                       .from = w[5],
                       .got = w[6],
                       .known = w[7]});
  return m;
}

void add_row(PartReport& report, const CommRow& row) {
  const auto number = [](double x, double scale) { return figure(x * scale); };
  constexpr double kGb = 1e-9;
  report.rows.push_back({row.axis, fmt::format("{}", row.ranks), name_of(row.op), format_bytes(static_cast<uint64_t>(row.bytes)),
                         number(row.seconds, 1e6), number(row.algbw(), kGb), number(row.busbw(), kGb), number(row.best_busbw(), kGb),
                         row.slowest < 0 ? "" : fmt::format("{}", row.slowest)});
  report.json["collectives"].push_back(
      {{"axis", row.axis},
       {"ranks", row.ranks},
       {"op", name_of(row.op)},
       {"bytes", row.bytes},
       {"seconds", row.seconds},
       {"algbw", row.algbw()},
       {"busbw", row.busbw()},
       {"best_group_busbw", row.best_busbw()},
       {"slowest_group", row.slowest < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(row.slowest)}});
}

}  // namespace

PartReport check_comm(const CheckRun& run) {
  std::vector<CommMeasured> all;
  for (const nlohmann::json& j : gather_json(run.world(), packed_comm(measure_comm(run)))) all.push_back(unpacked_comm(j));
  PartReport report{.name = "comm", .alignment = "lrlrrrrrr", .findings = judge_comm(all, run.hosts, least_delay(run))};
  report.json = {
      {"transport", all[0].transport}, {"collectives", nlohmann::ordered_json::array()}, {"links", nlohmann::ordered_json::array()}};
  report.rows.push_back({"axis", "ranks", "op", "size", "us", "algbw GB/s", "busbw", "best group", "slowest"});
  for (const CommRow& row : comm_rows(all)) add_row(report, row);
  for (const CommMeasured& m : all)
    for (const LinkTime& l : m.links)
      report.json["links"].push_back({{"axis", l.axis}, {"a", l.a}, {"b", l.b}, {"seconds", l.typical}, {"best_seconds", l.best}});
  report.title = "every element of sums, gathers and messages is compared; the slowest group of each axis";
  if (report.rows.size() == 1) {
    report.rows.clear();
    report.title = "one rank: nothing to exchange";
  }
  return report;
}

}  // namespace hlat
