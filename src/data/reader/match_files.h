// Which files a path of the config names: a file, a folder, or a pattern. In a pattern * ? [abc] match within a name, {a,b} either, ** any
// depth of folders. A folder means all files below it whose names are those of data files. Names that begin with a point are only found
// when the pattern says so, and folders behind links are not walked by **. Indices of data files that lie among them are passed over, and
// so is an .idx without its .bin, with a remark.
#pragma once

#include <string>
#include <vector>

#include "data/reader/input_file.h"

namespace hlat {

struct FoundFile {
  std::string path;
  reader::FileStamp stamp;
};

struct FoundFiles {
  std::vector<FoundFile> files;      // sorted by path, each file once
  std::vector<std::string> remarks;  // on files that were left out
};

// UsageError when there is none, or a folder or file cannot be looked at.
FoundFiles find_files(const std::string& path);
std::vector<std::string> match_files(const std::string& path);  // only their names

}  // namespace hlat
