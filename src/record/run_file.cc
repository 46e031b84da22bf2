#include "record/run_file.h"

#include "base/error.h"
#include "base/file.h"

namespace hlat {
namespace fs = std::filesystem;

void put_run_file(RunFolder& folder, const std::string& name, std::string_view text) {
  folder.lease().check();
  const fs::path part = folder.dir() / (name + ".part");
  std::error_code error;
  fs::remove(part, error);  // of a process that died
  try {
    OutputFile(part, OutputFile::Mode::create_new).write(text);
    fs::rename(part, folder.dir() / name, error);
    if (error) fail_storage(error.value(), "cannot write " + (folder.dir() / name).string());
  } catch (const Error& e) {
    fs::remove(part, error);
    folder.log().warn("{}; the run goes on without {}", e.what(), name);
  }
}

}  // namespace hlat
