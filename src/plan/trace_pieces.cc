#include "plan/trace_pieces.h"

#include <map>

#include "plan/simulate.h"

namespace hlat {

std::vector<TracePiece> pieces_of(const StepTrace& trace, const StepClock& clock, std::vector<OpSums>& all_sums) {
  std::vector<double> seconds;
  for (const TracedOp& o : trace.ops()) seconds.push_back(clock.op(o));
  std::vector<TracePiece> pieces;
  std::map<std::vector<uint32_t>, uint32_t> known;  // equal stretches of ops share their sums
  std::vector<uint32_t> run;
  TracedAction action;
  const auto close = [&] {
    if (run.empty()) return;
    const auto [it, fresh] = known.try_emplace(run, static_cast<uint32_t>(all_sums.size()));
    double total = 0;
    if (fresh) {
      std::map<uint8_t, double> sums;
      for (const uint32_t i : run) sums[trace.ops()[i].kind] += seconds[i];
      all_sums.emplace_back(sums.begin(), sums.end());
    }
    for (const auto& [kind, s] : all_sums[it->second]) total += s;
    pieces.push_back({.kind = TraceKind::op, .seconds = total, .sums = it->second, .action = action});
    run.clear();
  };
  for (const TraceEntry& e : trace.entries()) {
    if (e.kind == TraceKind::op) {
      run.push_back(e.index);
      continue;
    }
    close();
    if (e.kind == TraceKind::action)
      action = trace.actions()[e.index];
    else
      pieces.push_back({.kind = e.kind, .index = e.index, .action = action});
  }
  close();
  return pieces;
}

}  // namespace hlat
