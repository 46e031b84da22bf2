// How a run of a study stands, from its folder alone: this is what a study resumes from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/saved.h"
#include "study/grid.h"

namespace hlat {

enum class Standing : uint8_t {
  waiting,     // nothing is there yet
  cut_off,     // begun; hlat train resumes it, or starts it again where nothing was saved
  running,     // another process works on it
  finished,    // it has recorded that it is
  numbers,     // ended with a numerical failure, exit code 5: a result
  unreadable,  // its folder cannot be read, or not which config its run had
  taken,       // its checkpoint.dir has checkpoints, and nothing else is there: they are of another run, which it would go on with
};
std::string_view name_of(Standing standing);

struct RunStanding {
  Standing standing = Standing::waiting;
  int64_t step = 0;                     // the last that is recorded
  std::string reason = {};              // of an end; why it cannot be read, or where it is taken
  std::vector<KeyChange> changes = {};  // what the folder's config has otherwise than the study: they contradict each other
  bool config_unknown = false;          // unreadable for its config alone
  bool records_gone = false;            // cut off while an earlier run was set aside: hlat train needs --fresh to start it
  bool of_another_run() const { return standing == Standing::taken || !changes.empty(); }
  bool can_be_set_aside() const { return of_another_run() || config_unknown; }  // by --fresh
  bool starts_anew() const { return can_be_set_aside() || records_gone; }
  std::string contradiction() const;  // its words, where it is of another run
  bool is_result() const { return (standing == Standing::finished || standing == Standing::numbers) && changes.empty(); }
};

RunStanding standing_of(const PlannedRun& run);  // a folder that cannot be read is no error

// Keys whose values differ, those left out that do not decide what a run tells: folders, records, saves, threads, and what the start of a
// run finds out.
std::vector<KeyChange> contradictions(const Config& recorded, const Config& planned);

}  // namespace hlat
