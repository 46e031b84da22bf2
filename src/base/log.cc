#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cerrno>

#include "base/file.h"

namespace hlat {

Log make_file_log(const std::filesystem::path& file) try {
  errno = 0;
  auto to_file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
  to_file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  auto to_stderr = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  to_stderr->set_level(spdlog::level::warn);
  to_stderr->set_pattern("hlat: %l: %v");
  auto log = std::make_shared<spdlog::logger>("hlat", spdlog::sinks_init_list{to_file, to_stderr});
  log->flush_on(spdlog::level::info);  // a killed run keeps its last lines
  return log;
} catch (const spdlog::spdlog_ex&) {
  fail_storage(errno, "cannot open the log " + file.string());
}

}  // namespace hlat
