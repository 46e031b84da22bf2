#include "cli/ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "cli/exit_code.h"

namespace hlat {

namespace {

// All ranks read the same input, so rank 0 speaks for them and ends the job; the others only speak when it does not.
void let_rank_0_speak(const Session& session) {
  if (session.rank() != 0) std::this_thread::sleep_for(std::chrono::seconds(5));
}

}  // namespace

void run_on_ranks(Session& session, const int64_t& step, const std::function<void()>& body) {
  if (session.world().size() == 1) return body();
  const auto end = [&](const char* what, int code) {
    const std::string when = step > 0 ? fmt::format(", step {}", step) : "";
    fmt::print(stderr, "hlat: {}{}: {}\n", session.where(), when, what);
    std::fflush(stderr);
    session.abort(code);
  };
  try {
    body();
    session.world().barrier();  // nobody leaves while another still needs it
  } catch (const UsageError& e) {
    let_rank_0_speak(session);
    end(e.what(), kUsage);
  } catch (const CheckFailed& e) {
    end(fmt::format("{}\nhlat: this is a bug in hlat", e.what()).c_str(), kBug);
  } catch (const std::exception& e) {
    end(e.what(), kFailed);
  }
}

Launch this_launch() {
  return detect_launch([](const char* name) { return std::getenv(name); });
}

}  // namespace hlat
