// What a rank is doing, as others can read it without asking: a block of shared memory that the rank alone writes and that the agent of
// its host reads, also when the process is stopped, hangs or is gone. No locks: words that belong together are written in an order that
// a reader checks by a sequence number (words) or does not need (counters).
//
//   origin     who this is                      groups   the collective or message each group of ranks is in
//   now        step, action, op, progress       steps    times of the latest steps
//   phase      of the run, in words             end      how the process ended, where it could still say so
//   events     the latest 512, in a ring
//
// Times are of CLOCK_MONOTONIC, which all processes of a host share.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace hlat {

// What limits the time of a phase: how long the same took before, or a limit of its own.
enum class FlightPhase : uint8_t { start, training, validation, evaluation, last_save, end };
inline constexpr int kFlightPhases = 6;

// Parts of a step.
enum class FlightAction : uint8_t { none, load, forward, backward, reduce, norms, update, read_back, compare, save_wait };
inline constexpr int kFlightActions = 10;

enum class FlightKind : uint8_t { none, phase, step, action, op, enter, leave };

struct FlightEvent {
  uint64_t time_ns = 0;
  uint64_t number = 0;  // of the group's operation, for enter and leave; of the micro-batch for an action; of the step for a step
  int32_t peer = -1;    // of a message; the chunk of an action
  FlightKind kind = FlightKind::none;
  uint8_t what = 0;   // FlightPhase, FlightAction, OpKind or CommKind
  int8_t group = -1;  // index of FlightRing::groups
  uint8_t unused = 0;
};

template <class T>
using FlightWord = std::atomic<T>;  // lock-free, so it works between processes
static_assert(FlightWord<uint64_t>::is_always_lock_free && FlightWord<double>::is_always_lock_free);

// Text that one thread at a time writes and others read whole: the sequence is odd while it changes.
template <int kBytes>
struct FlightText {
  FlightWord<uint32_t> sequence;
  std::array<FlightWord<char>, kBytes> text;
};

// A group of ranks, as one rank knows it. Operations of a group are counted from 1, and in the same order on all its ranks; messages
// between two ranks (send, recv) are not counted, they name the peer.
struct FlightGroup {
  FlightWord<uint64_t> id;  // equal on its ranks, different from other groups'; 0: none here
  FlightText<16> name;
  FlightWord<int32_t> rank, size;
  FlightWord<uint64_t> entered, left;  // collectives
  FlightWord<uint8_t> kind;            // CommKind under way, valid while open
  FlightWord<uint8_t> open;            // a call is under way
  FlightWord<uint8_t> on_stream;       // calls return before they are done
  FlightWord<uint8_t> queued;          // the call is a queue's, overlapped with the computation
  FlightWord<uint8_t> awaited;         // the computation waits for that queue
  FlightWord<int32_t> peer;            // that the call waits for, in this group; -1: not known
  FlightWord<uint64_t> since_ns;
};

struct FlightStep {
  FlightWord<int64_t> step;
  FlightWord<double> seconds, compute_s;  // compute: without waits for peers and data
};

// Where ranks of hlat launch put their rings on their host, and by which processes of a job are known: a variable of their environment.
inline constexpr const char* kFlightVariable = "HLAT_JOB";

inline constexpr uint32_t kFlightMagic = 0x54414c48, kFlightVersion = 1;
inline constexpr int kFlightGroups = 16, kFlightSteps = 64, kFlightEvents = 512;

struct FlightRing {
  // origin
  FlightWord<uint32_t> magic, version;  // magic is written last
  FlightWord<int32_t> rank, ranks, pid;
  FlightWord<uint64_t> started_ns;
  FlightWord<int32_t> tp, pp, dp;  // degrees; 0: not known yet
  FlightText<64> host;

  // of the agent that reads this; a rank whose agent is gone ends itself
  FlightWord<int32_t> agent_pid;
  FlightWord<uint64_t> agent_beat_ns;

  // now
  FlightWord<uint64_t> progress;     // counts everything that is done
  FlightWord<uint64_t> progress_ns;  // when it last did
  FlightWord<int64_t> step;          // under way; 0: before the first
  FlightWord<int64_t> steps_done;    // by this process
  FlightWord<uint8_t> action, op;
  FlightWord<int32_t> micro, chunk;
  FlightWord<uint64_t> saved_bytes;  // moves while a save gets on
  FlightWord<int64_t> saved_step;    // the latest checkpoint; 0: none

  FlightWord<uint8_t> phase_kind;
  FlightWord<uint64_t> phase_ns;
  FlightText<128> phase;
  std::array<FlightStep, kFlightSteps> steps;             // the latest; number n lies at n % kFlightSteps
  std::array<FlightWord<double>, kFlightPhases> longest;  // of each phase that ended, seconds

  std::array<FlightGroup, kFlightGroups> groups;

  // end
  FlightWord<uint8_t> ended;
  FlightWord<int32_t> exit_code;
  FlightText<1024> reason;

  FlightWord<uint64_t> events_written;
  std::array<FlightEvent, kFlightEvents> events;
};

}  // namespace hlat
