// A run folder at a glance: how the run stands, how far it is, and what its time went to. Reads only; any folder, at any time.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/goodput.h"

namespace hlat {

enum class RunState : uint8_t {
  running,   // a process or a launcher works on it
  finished,  // its last step is done
  stopped,   // a signal ended it
  failed,    // ended in another way, or without a word
};
std::string_view name_of(RunState state);

struct RunOverview {
  std::filesystem::path folder;
  RunState state = RunState::failed;
  int64_t step = 0, total = 0;  // recorded, of how many; 0: not known
  std::optional<double> loss = {};
  RunAccount run = {};
  std::vector<RunEvent> events = {};       // of all runs that the folder had, in the order of the file
  std::vector<std::string> problems = {};  // of events.jsonl: "line 3 is no JSON object"

  std::string last_event() const;  // "fault: hang at step 12, rank 3 on node2"; saves are none
  // Of this run, by rule: at how many steps it was raised. One that comes again at its step, behind a restart, counts once.
  std::map<std::string, int64_t> alarms() const;
  double changed_at() const;  // the latest event or step, seconds since 1970
  double recorded_at = 0;     // of the latest step
};

bool is_run_folder(const std::filesystem::path& folder);
RunOverview read_run(const std::filesystem::path& folder);

// Run folders in a folder, itself included, by name. What lies inside a run folder is none.
std::vector<std::filesystem::path> run_folders(const std::filesystem::path& folder);

// How an event is told to people, without its time.
std::string words_of(const RunEvent& event);

}  // namespace hlat
