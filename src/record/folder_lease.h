// The exclusive right to write into a run folder, on network file systems too: the file run.lock, which names host, process and start, and
// whose sequence number a thread raises four times in each lease. Nothing relies on flock or on the clocks of two hosts.
//
//   taken      by linking a complete file to the name: atomic on NFS, where an exclusive create once was not (that is the way
//              without hard links)
//   judged     on the owner's host by whether its process lives; elsewhere by watching for one lease whether the file changes
//   taken over when the owner is dead or silent: the claim run.lock.claim decides among several who want it, then rename() replaces the
//              file; an owner that was only silent finds another's file at its next renewal, and check() throws
//   renewed    through the descriptor of the own file: after a takeover that writes nowhere
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"

namespace hlat {

// Another process, which lives, holds the folder.
class FolderHeld : public UsageError {
 public:
  using UsageError::UsageError;
};

class FolderLease {
 public:
  // FolderHeld names a living owner, and the setting by which the user chose the folder. say: told when another's silence has to be waited
  // for. May take a lease's time.
  using Say = std::function<void(const std::string&)>;
  FolderLease(const std::filesystem::path& folder, double lease_s, const Say& say = {}, std::string setting = "run.dir");
  ~FolderLease();
  FolderLease(const FolderLease&) = delete;
  FolderLease& operator=(const FolderLease&) = delete;

  void check() const;                                        // Error when another process has taken over
  void release();                                            // gives the folder back before this ends; from any thread
  const std::string& taken_over() const { return word_; }    // from whom and why; empty: it was free
  uint64_t token() const { return token_; }                  // tells this lease from all others
  static bool is_held(const std::filesystem::path& folder);  // somebody writes there: the owner's process lives, or, on another host, the
                                                             // lock was renewed within its lease

 private:
  struct Owner;
  void acquire(const Say& say);
  bool create(const std::filesystem::path& name, std::string_view content) const;
  bool is_dead(const Owner& owner, const std::string& content, const Say& say) const;
  bool replace(const std::string& dead);
  std::string content() const;
  bool is_own() const;
  void renew();

  std::filesystem::path folder_, file_;
  double lease_s_;
  std::string setting_;
  uint64_t token_;
  std::string since_;
  uint64_t sequence_ = 0;
  int fd_ = -1;
  std::string word_;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool released_ = false;
  std::thread thread_;
};

// The token in a folder's lock; 0: there is none. Tells whether this host sees the folder that another rank holds.
uint64_t lease_token(const std::filesystem::path& folder);

}  // namespace hlat
