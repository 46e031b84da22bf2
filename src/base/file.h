// Files that are written line by line or record by record and must be on disk when a run is killed.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

namespace hlat {

class OutputFile {
 public:
  enum class Mode { append, create_new };  // create_new: an existing file is an Error

  OutputFile(std::filesystem::path path, Mode mode);
  void write(std::string_view data);  // handed to the system on return; Error names the file and the reason

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace hlat
