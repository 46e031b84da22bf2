// The mixture of a run's data as it was read: shares of the sources over its steps, from the rows that each step counts ("rows/web").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "record/run_curves.h"

namespace hlat {

inline constexpr std::string_view kRowsOf = "rows/";  // and the source: the key of its curve

struct SourceShares {
  std::vector<int64_t> step;                          // the last of each stretch
  std::map<std::string, std::vector<double>> shares;  // by source: of the rows of the stretch; NaN: it had none
};

// Over at most `most` equal stretches of the steps that tell their rows; a source that a step does not tell had none there.
SourceShares source_shares(const RunCurves& curves, size_t most);

}  // namespace hlat
