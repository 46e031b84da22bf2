// What each rank runs on, as words by name: ranks that differ from most are named. Limits that a run may meet are looked at too.
#pragma once

#include <map>
#include <string>

#include "burnin/check_run.h"

namespace hlat {

std::map<std::string, std::string> version_facts(const CheckRun& run);

PartReport check_versions(const CheckRun& run);

}  // namespace hlat
