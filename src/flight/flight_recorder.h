// Writes what this rank does into a FlightRing. Without a file the ring is private memory of the process. Every call costs some tens of
// nanoseconds and never blocks. Calls of one group come from one thread at a time; all others from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "flight/flight_ring.h"

namespace hlat {

struct FlightOrigin {
  int rank = 0, ranks = 1;
  std::string host;
};

class FlightRecorder {
 public:
  // file: in a file system in memory; made anew. Empty: private. FaultError when it cannot be made.
  FlightRecorder(const std::filesystem::path& file, const FlightOrigin& origin);
  ~FlightRecorder();  // the file stays, for whoever reads it
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  void mesh(int tp, int pp, int dp);
  void phase(FlightPhase kind, std::string_view words);
  void begin_step(int64_t step);
  void end_step(int64_t step, double seconds, double compute_s);  // seconds 0: it was left out
  void action(FlightAction action, int micro = -1, int chunk = -1);
  void op(uint8_t kind);               // an OpKind
  void beat() { progress(now_ns()); }  // something got on that has no event: a file is read, documents are counted
  void saving(uint64_t bytes, int64_t saved_step);
  void ended(int exit_code, std::string_view reason);  // only the first counts

  // A group of ranks; returns its index, -1 when there is no room. id: equal on all its ranks and on no others.
  int add_group(std::string_view name, uint64_t id, int rank, int size, bool on_stream);
  void enter(int group, uint8_t kind, int peer);  // a CommKind; peer: of a message, else -1
  void waits_for(int group, int peer);            // inside the call
  void leave(int group);
  // Calls of the group come from a queue's thread from now on, or again from the computation; and whether that waits for the queue.
  void queued(int group, bool on);
  void awaited(int group, bool on);

  const FlightRing& ring() const { return *ring_; }
  // Whether an agent watched this process and is gone: its process, or its beats for so many seconds.
  bool agent_is_gone(double silent_s) const;

  static uint64_t now_ns();

 private:
  void progress(uint64_t now);
  void event(uint64_t now, FlightKind kind, uint8_t what, uint64_t number, int peer, int group);
  bool in_range(int group) const { return group >= 0 && group < kFlightGroups; }

  FlightRing* ring_ = nullptr;
};

std::filesystem::path flight_ring_file(const std::filesystem::path& folder, int rank);

std::string_view name_of(FlightPhase phase);
std::string_view name_of(FlightAction action);

}  // namespace hlat
