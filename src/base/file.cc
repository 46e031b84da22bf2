#include "base/file.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace hlat {

OutputFile::OutputFile(std::filesystem::path path, Mode mode)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), mode == Mode::append ? "abe" : "wbxe")) {
  if (!file_) fail("cannot open {} for writing: {}", path_.string(), std::strerror(errno));
}

void OutputFile::write(std::string_view data) {
  if (std::fwrite(data.data(), 1, data.size(), file_.get()) != data.size() || std::fflush(file_.get()) != 0)
    fail("cannot write {}: {}", path_.string(), std::strerror(errno));
}

}  // namespace hlat
