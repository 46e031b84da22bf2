// hlat eval --compare: results from files, and published ones, side by side.
#pragma once

#include "cli/eval_args.h"

namespace hlat {

void compare_models(const EvalArgs& args);  // args.compare: files of results or their folders, "published", "published:NAME"

}  // namespace hlat
