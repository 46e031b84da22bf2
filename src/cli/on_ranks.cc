#include "cli/on_ranks.h"

#include "cli/ranks.h"
#include "config/resolve.h"

namespace hlat {

void on_ranks(const ConfigArgs& args, const std::function<void(const Config&, Session&)>& body) {
  const Launch launch = this_launch();
  const Config given = with_ranks(args.load().config, launch.ranks);
  Session session = start_session(launch, given.parallel);
  run_on_ranks(session, given, 0, [&] { body(given, session); });
}

}  // namespace hlat
