// The collectives of a check with known data. Values are integers that f32 holds exactly, so that a sum has one set of bits in any order:
//   sums      rank r of a group puts in a(i) * (1 + r mod 4) as element i
//   gathers   element i of the gathered tensor, which comes from rank r, is a(i) + 256 r
//   messages  element i of a message from rank r is a(i) + 256 r
// with a(i) = +-1 to +-64, never zero. Sums stay exact up to 60,000 ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "burnin/verdict.h"
#include "comm/comm.h"

namespace hlat {

struct CommCase {
  Collective op = Collective::all_reduce;
  int64_t elements = 0;  // f32: of the whole tensor, or of a message
  int64_t bytes() const { return elements * static_cast<int64_t>(sizeof(float)); }
};

// Sizes that are tried, in bytes: 1 KiB to 64 MiB, or three of them.
std::vector<int64_t> comm_sizes(bool short_form);

// What rank `rank` of `size` puts in, and what must come out. The ring of messages goes from each rank to the next.
std::vector<float> comm_input(const CommCase& c, int rank, int size);
std::vector<float> comm_output(const CommCase& c, int rank, int size);
// Of an element that came out wrong: the rank it came from; -1: a sum, from all.
int comm_source(const CommCase& c, int64_t element, int rank, int size);

// The tensors of a call, in the memory of a device.
struct CommBuffers {
  Tensor full;  // all elements
  Tensor own;   // of a rank: its rows, or a message
};
// The parts of the buffers that hold input and output.
Tensor comm_input_of(const CommCase& c, const CommBuffers& buffers, int rank, int size);
Tensor comm_output_of(const CommCase& c, const CommBuffers& buffers, int rank, int size);
void run_case(const CommCase& c, const CommBuffers& buffers, Comm& comm);

}  // namespace hlat
