// A child process, held by a descriptor (pidfd) that cannot come to mean another one. It is killed and collected when this goes away.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "sandbox/descriptor.h"

namespace hlat::sandbox {

class Process {
 public:
  Process(pid_t id, Descriptor handle) : id_(id), handle_(std::move(handle)) {}
  ~Process();
  Process(Process&& other) noexcept = default;
  Process& operator=(Process&&) = delete;

  struct End {
    int exit_status = -1;  // -1: a signal
    int signal = 0;
  };

  pid_t id() const { return id_; }
  const Descriptor& handle() const { return handle_; }  // readable once it has ended
  void kill() const;
  End collect();  // waits for it

 private:
  pid_t id_;
  Descriptor handle_;  // closed once it is collected
};

// A process and all that descend from it, while they live; those that come and go meanwhile may be missed.
std::vector<pid_t> process_tree(pid_t root);

// Memory of their own: neither files nor what is shared with others by name. Pages that a child has from its parent count for both.
uint64_t own_memory(const std::vector<pid_t>& processes);

}  // namespace hlat::sandbox
