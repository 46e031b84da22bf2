// Kernels that more than the call decides: by measurement (matmul) or by a library's own judgement (attention). They belong to a run: a
// checkpoint records them and a resume uses them again, so that it repeats the bits though the machine's cache is gone.
//
// A choice is named by the kind of device, the library with its version, and the call (shape, layouts, types); what was chosen is a text of
// whoever chose. JSON of one rank: {device: {library: {call: kernel}}}. A checkpoint has those of all ranks: {"common": as of one rank,
// "differing": [{"ranks": [[first, last], ...], "choices": as of one rank}]}. Common is, of every call, what the first rank that has it
// uses; hosts that measured for themselves may have chosen otherwise, and of them only what differs is kept. "" is no choices.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hlat {

using KernelsByCall = std::map<std::string, std::string>;
using KernelsByLibrary = std::map<std::string, KernelsByCall>;
using KernelChoices = std::map<std::string, KernelsByLibrary>;  // by kind of device

inline constexpr std::string_view kOwnKernels = "own kernels";  // as a library

std::string kernel_choices_text(const KernelChoices& choices);
// Error: not what kernel_choices_text writes. Names may come from anywhere: they have only printable characters when this returns.
KernelChoices parse_kernel_choices(std::string_view json);

// by_rank: what kernel_choices_text wrote on each rank.
std::string merge_kernel_choices(const std::vector<std::string>& by_rank);
// What one rank had, and where it is not among those that were merged, or has not met a call, what is common.
std::string kernel_choices_for(int rank, std::string_view merged);

// Of a record, what can be used on a device with these libraries, and lines for a log: how many that are, and which are left out and why.
struct FittingChoices {
  KernelsByLibrary kernels;
  std::vector<std::string> lines;
};
FittingChoices fitting_choices(const KernelChoices& recorded, const std::string& device, const std::vector<std::string>& libraries);

}  // namespace hlat
