#include "sandbox/system_view.h"

#include "base/error.h"

namespace hlat::sandbox {

namespace fs = std::filesystem;

std::vector<Place> system_view(const fs::path& root) {
  std::vector<Place> view{{Place::Kind::folder, (root / "usr").string(), "usr"}};
  for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    const fs::path path = root / name;
    if (fs::is_symlink(path))
      view.push_back({Place::Kind::link, fs::read_symlink(path).string(), name});
    else if (fs::is_directory(path))
      view.push_back({Place::Kind::folder, path.string(), name});
  }
  // What the loader and the links of libraries with alternatives (BLAS of numpy) go through.
  if (fs::is_regular_file(root / "etc/ld.so.cache"))
    view.push_back({Place::Kind::file, (root / "etc/ld.so.cache").string(), "etc/ld.so.cache"});
  if (fs::is_directory(root / "etc/alternatives"))
    view.push_back({Place::Kind::folder, (root / "etc/alternatives").string(), "etc/alternatives"});
  for (const char* name : {"dev/null", "dev/zero", "dev/full", "dev/random", "dev/urandom"})
    view.push_back({Place::Kind::device, (root / name).string(), name});
  view.push_back({Place::Kind::link, "/tmp", "dev/shm"});
  return view;
}

std::string find_python(const fs::path& root) {
  for (const char* name : {"usr/bin/python3", "usr/local/bin/python3"})
    if (fs::exists(root / name)) return (fs::path("/") / name).string();
  fail<UsageError>(
      "programs run in a sandbox with python3 of the system, and neither /usr/bin nor /usr/local/bin has it: "
      "install it (Debian package: python3)");
}

}  // namespace hlat::sandbox
