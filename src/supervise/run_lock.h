// The lock of a folder that ranks hold (record/folder_lease.h), as the launcher sees it: whose it is, and whether it can be taken away.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace hlat {

struct LockOwner {
  std::string host;
  int64_t pid = 0;
  bool operator==(const LockOwner&) const = default;
};

std::optional<LockOwner> lock_owner(const std::filesystem::path& folder);  // none: there is no lock, or it cannot be read

// The lock of a process that is known to be gone; that of another stays. Returns whether it was there.
bool remove_lock_of(const std::filesystem::path& folder, const LockOwner& owner);

// A lock whose owner may be out of reach and live: it is free when the owner is known to be gone, or has not renewed it for the lease that
// it names.
class LockWatch {
 public:
  explicit LockWatch(const std::filesystem::path& folder) : file_(folder / "run.lock") {}

  bool is_free(double now);  // seconds, of a clock that never goes back
  void remove() const;       // what is_free() has found to be nobody's; a lock that has changed since stays

 private:
  std::filesystem::path file_;
  std::string seen_;
  double since_ = 0;
};

}  // namespace hlat
