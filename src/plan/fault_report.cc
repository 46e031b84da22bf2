#include "plan/fault_report.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "base/table.h"

namespace hlat {

namespace {

// Below this a run does not end in any time that matters.
constexpr double kHopeless = 1e-3;

std::string share_words(double share) { return fmt::format("{:.2f}%", 100 * share); }

std::string every_words(const FaultAsk& ask, SaveEvery every) {
  if (!every) return "no saves";
  return fmt::format("{} step{}, {}", *every, *every == 1 ? "" : "s", format_duration(interval_seconds(ask, every)));
}

void check_interval(const FaultReport& report) {
  if (!report.every) return;
  const FaultAsk& ask = report.ask;
  if (*report.every < 1) fail<UsageError>("checkpoint.every = {}: must be at least 1 step here", *report.every);
  if (interval_seconds(ask, report.every) < ask.commit_s)
    fail<UsageError>("checkpoint.every = {}: the next save would begin after {}, but a save takes {}; must be at least {:.0f}",
                     *report.every, format_duration(interval_seconds(ask, report.every)), format_duration(ask.commit_s),
                     std::ceil(ask.commit_s / ask.step_s));
}

// Days that the run takes with its losses.
double wall_days(const FaultReport& report, const FaultShares& shares) { return report.useful_days / shares.useful; }

std::vector<std::string> row_of(const FaultReport& report, SaveEvery every, std::string_view what) {
  const FaultShares s = fault_shares_of(report, every);
  const bool ends = s.useful >= kHopeless;
  const bool known = report.useful_days > 0;
  return {std::string(what),
          every_words(report.ask, every),
          share_words(s.useful),
          share_words(s.saves),
          share_words(s.repeated),
          share_words(s.detection),
          share_words(s.restart),
          dollar_words(fault_dollars(report.ask, s, report.price, 1).total()),
          !known ? "-"
          : ends ? dollar_words(fault_dollars(report.ask, s, report.price, wall_days(report, s)).total())
                 : "never ends",
          !known ? "-"
          : ends ? fmt::format("{:.1f}", wall_days(report, s))
                 : "never ends"};
}

// What is wrong beyond any interval.
std::string warning_words(const FaultReport& report, const FaultShares& best) {
  const FaultAsk& ask = report.ask;
  const double rate = ask.failures_per_s(), away = ask.detection_s + ask.restart_s;
  if (rate == 0) return "nothing fails: no saves are needed\n";
  const std::string facts =
      fmt::format("the job fails every {} and takes {} to work again", format_duration(1 / rate), format_duration(away));
  if (best.useful < kHopeless) return fmt::format("goodput is near 0: {}\n", facts);
  if (rate * away >= 1) return fmt::format("most of the time is lost to recovery: {}\n", facts);
  return {};
}

nlohmann::ordered_json dollars_json(const FaultDollars& d) {
  return {{"saves", figure_json(d.saves)},
          {"repeated", figure_json(d.repeated)},
          {"detection", figure_json(d.detection)},
          {"restart", figure_json(d.restart)},
          {"total", figure_json(d.total())}};
}

nlohmann::ordered_json interval_json(const FaultReport& report, SaveEvery every) {
  const FaultShares s = fault_shares_of(report, every);
  nlohmann::ordered_json j;
  j["steps"] = every ? nlohmann::ordered_json(*every) : nlohmann::ordered_json();
  j["seconds"] = every ? nlohmann::ordered_json(interval_seconds(report.ask, every)) : nlohmann::ordered_json();
  j["goodput"] = s.useful;
  j["up"] = s.up();
  j["lost"] = {{"saves", s.saves}, {"repeated", s.repeated}, {"detection", s.detection}, {"restart", s.restart}};
  j["failures_per_day"] = s.failures_per_day;
  j["dollars_lost_per_day"] = dollars_json(fault_dollars(report.ask, s, report.price, 1));
  if (report.useful_days > 0 && s.useful >= kHopeless) {
    j["days"] = wall_days(report, s);
    j["dollars_lost"] = dollars_json(fault_dollars(report.ask, s, report.price, wall_days(report, s)));
  }
  return j;
}

}  // namespace

CostFigure FaultDollars::total() const {
  if (!saves.has_value()) return saves;
  return CostFigure::known(saves.value() + repeated.value() + detection.value() + restart.value());
}

FaultDollars fault_dollars(const FaultAsk& ask, const FaultShares& shares, const NodePrice& price, double days) {
  const CostFigure all = price.dollars_per_hour ? CostFigure::known(*price.dollars_per_hour * static_cast<double>(ask.nodes) * 24 * days)
                                                : CostFigure::unknown(price.key);
  return {all.times(shares.saves), all.times(shares.repeated), all.times(shares.detection), all.times(shares.restart)};
}

FaultShares fault_shares_of(const FaultReport& report, SaveEvery every) {
  if (every) return fault_shares(report.ask, interval_seconds(report.ask, every));
  FaultAsk ask = report.ask;
  ask.save_stall_s = ask.commit_s = 0;  // there is one save, at the end, which is not counted
  return fault_shares(ask, report.useful_days > 0 ? report.useful_days * 86400 : std::numeric_limits<double>::infinity());
}

std::string fault_text(const FaultReport& report) {
  const FaultAsk& ask = report.ask;
  validate(ask);
  check_interval(report);
  const double rate = ask.failures_per_s();
  const SaveEvery best = best_save_every(ask);
  std::string s = rate == 0 ? fmt::format("{} nodes that never fail\n", ask.nodes)
                            : fmt::format("{} nodes, one failure in {:.0f} hours of each: the job fails every {}\n", ask.nodes,
                                          ask.node_mtbf_h, format_duration(1 / rate));
  s += fmt::format("a fault is found in {}, and work goes on after {} more; a save adds {} and can be loaded after {}\n",
                   format_duration(ask.detection_s), format_duration(ask.restart_s), format_duration(ask.save_stall_s),
                   format_duration(ask.commit_s));
  std::vector<std::vector<std::string>> rows{
      {"", "save every", "goodput", "saves", "repeated", "detection", "restart", "lost a day", "lost in the run", "days"}};
  rows.push_back(row_of(report, report.every, "given"));
  if (best != report.every) rows.push_back(row_of(report, best, "best"));
  return s + table_text(rows, "llrrrrrrrr") + warning_words(report, fault_shares_of(report, best));
}

nlohmann::ordered_json fault_json(const FaultReport& report) {
  validate(report.ask);
  check_interval(report);
  const FaultAsk& ask = report.ask;
  nlohmann::ordered_json j;
  j["nodes"] = ask.nodes;
  j["node_mtbf_h"] = std::isinf(ask.node_mtbf_h) ? nlohmann::ordered_json() : nlohmann::ordered_json(ask.node_mtbf_h);
  j["detection_s"] = ask.detection_s;
  j["restart_s"] = ask.restart_s;
  j["save_stall_s"] = ask.save_stall_s;
  j["commit_s"] = ask.commit_s;
  j["step_s"] = ask.step_s;
  j["given"] = interval_json(report, report.every);
  j["best"] = interval_json(report, best_save_every(ask));
  return j;
}

}  // namespace hlat
