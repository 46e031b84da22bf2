#include "burnin/comm_cases.h"

#include "base/part.h"

namespace hlat {

namespace {

constexpr int kRingTag = 5;

float base_value(int64_t i) {
  const auto h = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15ull >> 57;  // 0 to 127
  return static_cast<float>(h < 64 ? static_cast<int>(h) - 64 : static_cast<int>(h) - 63);
}

bool is_sum(Collective op) { return op == Collective::all_reduce || op == Collective::reduce_scatter; }

int before(int rank, int size) { return (rank + size - 1) % size; }

// Elements of the input or the output within the whole tensor.
Part input_part(const CommCase& c, int rank, int size) {
  return c.op == Collective::all_gather ? part_of(c.elements, rank, size) : Part{.begin = 0, .count = c.elements};
}
Part output_part(const CommCase& c, int rank, int size) {
  return c.op == Collective::reduce_scatter ? part_of(c.elements, rank, size) : Part{.begin = 0, .count = c.elements};
}

}  // namespace

std::vector<int64_t> comm_sizes(bool short_form) {
  if (short_form) return {int64_t{1} << 10, int64_t{64} << 10, int64_t{1} << 20};
  std::vector<int64_t> sizes;
  for (int64_t bytes = int64_t{1} << 10; bytes <= int64_t{64} << 20; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

std::vector<float> comm_input(const CommCase& c, int rank, int size) {
  const Part part = input_part(c, rank, size);
  std::vector<float> values(static_cast<size_t>(part.count));
  for (int64_t i = 0; i < part.count; ++i) {
    const float a = base_value(part.begin + i);
    values[static_cast<size_t>(i)] = is_sum(c.op) ? a * static_cast<float>(1 + rank % 4) : a + 256 * static_cast<float>(rank);
  }
  return values;
}

std::vector<float> comm_output(const CommCase& c, int rank, int size) {
  const Part part = output_part(c, rank, size);
  int64_t factor = 0;
  for (int r = 0; r < size; ++r) factor += 1 + r % 4;
  std::vector<float> values(static_cast<size_t>(part.count));
  for (int64_t i = 0; i < part.count; ++i) {
    const float a = base_value(part.begin + i);
    values[static_cast<size_t>(i)] =
        is_sum(c.op) ? a * static_cast<float>(factor) : a + 256 * static_cast<float>(comm_source(c, i, rank, size));
  }
  return values;
}

int comm_source(const CommCase& c, int64_t element, int rank, int size) {
  if (c.op == Collective::send_recv) return before(rank, size);
  if (c.op != Collective::all_gather) return -1;
  int r = 0;
  while (element >= part_of(c.elements, r, size).end()) ++r;
  return r;
}

Tensor comm_input_of(const CommCase& c, const CommBuffers& b, int rank, int size) {
  return (c.op == Collective::all_gather || c.op == Collective::send_recv ? b.own : b.full).rows(0, input_part(c, rank, size).count);
}

Tensor comm_output_of(const CommCase& c, const CommBuffers& b, int rank, int size) {
  return (c.op == Collective::reduce_scatter ? b.own : b.full).rows(0, output_part(c, rank, size).count);
}

void run_case(const CommCase& c, const CommBuffers& b, Comm& comm) {
  const Tensor in = comm_input_of(c, b, comm.rank(), comm.size()), out = comm_output_of(c, b, comm.rank(), comm.size());
  switch (c.op) {
    case Collective::all_reduce: return comm.all_reduce(out);
    case Collective::all_gather: return comm.all_gather(out, in);
    case Collective::reduce_scatter: return comm.reduce_scatter(out, in);
    case Collective::send_recv: {
      Request recv = comm.recv(out, before(comm.rank(), comm.size()), kRingTag);
      Request send = comm.send(in, (comm.rank() + 1) % comm.size(), kRingTag);
      comm.wait(send);
      return comm.wait(recv);
    }
  }
}

}  // namespace hlat
