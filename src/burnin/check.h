// hlat check: whether the ranks and hosts of a job compute, remember, store and exchange rightly, and equally fast, before it is given to
// a run. Collective over the session's ranks; what it found is on all of them.
#pragma once

#include <array>
#include <string_view>

#include "burnin/check_run.h"

namespace hlat {

inline constexpr std::array<std::string_view, 8> kCheckParts = {"versions", "clock", "space", "disk", "memory", "matmul", "comm", "gpu"};

// "matmul,disk", of --only, as parts. UsageError for a word that is none.
std::set<std::string> parse_parts(const std::string& list);

CheckReport run_check(const Config& config, Backend& backend, Session& session, const CheckOptions& options,
                      const std::function<void(const std::string&)>& tell = {});

}  // namespace hlat
