#include "supervise/run_lock.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "record/folder_lease.h"

namespace hlat {

namespace fs = std::filesystem;

namespace {

std::string lock_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

double lease_in(const std::string& text) {
  constexpr double kUnknown = 60, kLongest = 86400;
  const auto lock = nlohmann::json::parse(text, nullptr, false);
  const auto found = lock.is_object() ? lock.find("lease_s") : lock.end();
  return lock.is_object() && found != lock.end() && found->is_number() ? std::clamp(found->get<double>(), 1.0, kLongest) : kUnknown;
}

}  // namespace

std::optional<LockOwner> lock_owner(const fs::path& folder) try {
  const auto lock = nlohmann::json::parse(lock_text(folder / "run.lock"));
  return LockOwner{.host = lock.at("host"), .pid = lock.at("pid")};
} catch (const nlohmann::json::exception&) {
  return std::nullopt;
}

bool remove_lock_of(const fs::path& folder, const LockOwner& owner) {
  std::error_code error;
  return lock_owner(folder) == owner && fs::remove(folder / "run.lock", error);
}

bool LockWatch::is_free(double now) {
  std::error_code error;
  if (!fs::exists(file_, error)) return seen_.clear(), true;
  const std::string text = lock_text(file_);
  if (text != seen_) seen_ = text, since_ = now;
  return !FolderLease::is_held(file_.parent_path()) || now - since_ > lease_in(text);
}

void LockWatch::remove() const {
  std::error_code error;
  if (!seen_.empty() && lock_text(file_) == seen_) fs::remove(file_, error);
}

}  // namespace hlat
