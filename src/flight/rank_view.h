// What a rank was doing at one moment, read from its ring: a plain copy, as an agent reports it and the launcher judges it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "flight/flight_ring.h"

namespace hlat {

// A group of ranks as this rank knows it.
struct GroupView {
  uint64_t id = 0;
  std::string name;
  int rank = 0, size = 0;
  uint64_t entered = 0, left = 0;
  bool open = false, on_stream = false;
  bool queued = false, awaited = false;  // the call is a queue's; the computation waits for that
  uint8_t kind = 0;                      // CommKind, while open
  int peer = -1;                         // in the group
  double since_s = 0;                    // how long the call has been under way
};

struct StepTime {
  int64_t step = 0;
  double seconds = 0, compute_s = 0;  // 0: it was left out
};

struct RankView {
  int rank = 0, ranks = 0, pid = 0;
  std::string host;
  int tp = 0, pp = 0, dp = 0;
  char process = '?';     // state as in /proc/PID/stat; 'X': it is gone
  double age_s = 0;       // of the process
  uint64_t io_bytes = 0;  // that the process has read and written so far; 0: not known
  uint64_t progress = 0;
  double silent_s = 0;  // since it last made progress
  int64_t step = 0, steps_done = 0, saved_step = 0;
  FlightAction action = FlightAction::none;
  uint8_t op = 0;  // OpKind of the latest op
  int micro = -1, chunk = -1;
  FlightPhase phase = FlightPhase::start;
  std::string phase_words;
  double phase_s = 0;           // how long it lasts
  std::vector<double> longest;  // by FlightPhase: of those that ended
  std::vector<StepTime> steps;  // the latest, oldest first; those after `steps_from`
  std::vector<GroupView> groups;
  bool ended = false;  // it has said how
  int exit_code = 0;
  std::string reason;

  bool gone() const { return process == 'X' || process == 'Z'; }
  bool stopped() const { return process == 'T' || process == 't'; }
};

// A ring of another process, mapped for reading.
class RingReader {
 public:
  // Nothing: the file is not there, or not ready yet.
  static std::optional<RingReader> open(const std::filesystem::path& file);
  RingReader(RingReader&& other) noexcept;
  RingReader& operator=(RingReader&& other) noexcept;
  ~RingReader();

  // steps_from: times of steps are listed after the first so many of the process.
  RankView view(int64_t steps_from = 0) const;
  std::vector<FlightEvent> events() const;  // oldest first; those that were overwritten meanwhile are left out
  void beat(int agent_pid) const;           // this process watches
  const FlightRing& ring() const { return *ring_; }

 private:
  explicit RingReader(FlightRing* ring) : ring_(ring) {}
  FlightRing* ring_;
};

nlohmann::ordered_json to_json(const RankView& view);
RankView rank_view(const nlohmann::ordered_json& json);  // Error where a field is missing or of another type

}  // namespace hlat
