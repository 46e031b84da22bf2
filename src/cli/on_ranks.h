// The way of a measuring command to its ranks: how it was started, the config, the other ranks within the time that a start may take.
#pragma once

#include <functional>

#include "cli/config_args.h"
#include "runtime/session.h"

namespace hlat {

// body(config, session) on all ranks, as run_on_ranks does; the config has parallel.dp.
void on_ranks(const ConfigArgs& args, const std::function<void(const Config&, Session&)>& body);

}  // namespace hlat
