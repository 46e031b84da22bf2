#include "plan/timeline.h"

#include <fmt/format.h>

#include "comm/comm.h"
#include "flight/flight_recorder.h"

namespace hlat {

namespace {

constexpr double kMicroseconds = 1e6;

std::string span_name(const SimSpan& s) {
  const auto axis = name_of(static_cast<Axis>(s.axis));
  if (s.what == SimSpan::What::call) return fmt::format("{} {}", axis, name_of(static_cast<CommKind>(s.kind)));
  if (s.what == SimSpan::What::wait) return fmt::format("wait for {}", axis);
  const auto action = static_cast<FlightAction>(s.action.kind);
  const bool pass = action == FlightAction::forward || action == FlightAction::backward;
  return pass ? fmt::format("{} {}", name_of(action), s.action.micro) : std::string(name_of(action));
}

}  // namespace

std::string chrome_trace(const StepTime& time) {
  std::string out = R"({"displayTimeUnit":"ms","traceEvents":[)";
  for (size_t s = 0; s < time.stages.size(); ++s) {
    out += fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":"stage {}"}}}},)", s, s);
    out += fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":0,"args":{{"name":"device"}}}},)", s);
    out += fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":1,"args":{{"name":"overlapped communication"}}}},)", s);
  }
  for (const SimSpan& s : time.spans)
    out += fmt::format(
        R"({{"name":"{}","cat":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"micro":{},"chunk":{}}}}},)", span_name(s),
        s.what == SimSpan::What::compute ? "compute"
        : s.what == SimSpan::What::call  ? "communication"
                                         : "wait",
        s.stage, s.queue ? 1 : 0, s.begin * kMicroseconds, (s.end - s.begin) * kMicroseconds, s.action.micro, s.action.chunk);
  if (out.back() == ',') out.pop_back();
  return out + "]}\n";
}

}  // namespace hlat
