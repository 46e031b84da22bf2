#include "cli/on_ranks.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/exit_code.h"
#include "cli/print.h"
#include "cli/ranks.h"
#include "config/resolve.h"
#include "runtime/start_watch.h"

namespace hlat {

void on_ranks(const ConfigArgs& args, const std::function<void(const Config&, Session&)>& body) {
  const Launch launch = this_launch();
  const Config given = with_ranks(args.load().config, launch.ranks);
  const auto too_long = [](const std::string& words) {
    print_err(fmt::format("hlat: {}\n", words));
    std::_Exit(kFault);
  };
  StartWatch start(launch, static_cast<double>(given.parallel.start_timeout_s), too_long);
  start.begin("joining the other ranks (MPI_Init)");
  Session session(launch, given.parallel.timeout_s);
  start.finish();
  run_on_ranks(session, given, 0, [&] { body(given, session); });
}

}  // namespace hlat
