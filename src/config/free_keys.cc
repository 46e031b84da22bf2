#include "config/free_keys.h"

#include <algorithm>
#include <array>

namespace hlat {

namespace {

// Keys, or with a point at their end all of a section; those of kDecisive are none.
constexpr std::array<std::string_view, 2> kDecisive = {"checkpoint.init_from", "checkpoint.resume_from"};
constexpr std::array<std::string_view, 14> kFree = {"run.dir",
                                                    "run.tensorboard",
                                                    "run.sample_lines",
                                                    "run.lease_s",
                                                    "data.workers",
                                                    "data.prefetch",
                                                    "data.cache_dir",
                                                    "checkpoint.",
                                                    "launch.",
                                                    "device.threads",
                                                    "device.backend",
                                                    "parallel.timeout_s",
                                                    "parallel.start_timeout_s",
                                                    "parallel.comm"};

}  // namespace

bool is_free_key(std::string_view key) {
  if (std::find(kDecisive.begin(), kDecisive.end(), key) != kDecisive.end()) return false;
  return std::any_of(kFree.begin(), kFree.end(),
                     [&](std::string_view free) { return free.ends_with('.') ? key.starts_with(free) : key == free; });
}

}  // namespace hlat
