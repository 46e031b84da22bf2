// The system calls that a program in the sandbox does not have, as a seccomp filter (classic BPF). The namespaces, ids and limits hold
// a program without it; it takes away kernel code that is rich in bugs, memory that no limit counts, and the ways out of dying with us.
// What is refused looks like a lack of permission or, where programs know how to do without, like an old kernel.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace hlat::sandbox {

std::vector<sock_filter> syscall_filter();

}  // namespace hlat::sandbox
