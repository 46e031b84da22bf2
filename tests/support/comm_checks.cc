#include "support/comm_checks.h"

#include <bit>
#include <functional>

#include "comm/host_exchange.h"
#include "comm/null_comm.h"
#include "support/host_memory.h"

namespace hlat::test {
namespace {

constexpr std::array kTypes = {DType::f32, DType::bf16, DType::f64};

// Values of very different size, so that another order of the sum gives other bits.
double value(uint64_t salt, int rank, int64_t element) {
  uint64_t x = salt * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(rank) * 0xbf58476d1ce4e5b9u + static_cast<uint64_t>(element) + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  const double unit = static_cast<double>(x >> 11) * 0x1p-52 - 1;  // [-1, 1)
  return unit * static_cast<double>(uint64_t{1} << (x % 17));
}

void fill(const Tensor& t, uint64_t salt, int rank, int64_t first = 0) {
  for (int64_t i = 0; i < t.numel(); ++i) store_f64(t, i, value(salt, rank, first + i));
}

// The sum over ranks, in rank order, as one element of type `dtype`.
double expected_sum(DType dtype, uint64_t salt, int ranks, int64_t element) {
  if (dtype == DType::f64) {
    double sum = value(salt, 0, element);
    for (int r = 1; r < ranks; ++r) sum += value(salt, r, element);
    return sum;
  }
  const auto input = [&](int rank) {
    const auto x = static_cast<float>(value(salt, rank, element));
    return dtype == DType::bf16 ? to_float(to_bf16(x)) : x;
  };
  float sum = input(0);
  for (int r = 1; r < ranks; ++r) sum += input(r);
  return dtype == DType::bf16 ? to_float(to_bf16(sum)) : sum;
}

// Element i must be want(i), bit by bit.
void expect(const Comm& comm, const std::string& what, const Tensor& got, const std::function<double(int64_t)>& want) {
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double g = load_f64(got, i), w = want(i);
    if (std::bit_cast<uint64_t>(g) != std::bit_cast<uint64_t>(w)) {
      fail("{} {}: rank {} of {} has {:.17g} in element {} of {}, expected {:.17g}", comm.name(), what, comm.rank(), comm.size(), g, i,
           got.str(), w);
    }
  }
}

// 0, 1, fewer than ranks, a prime, the edge of the one-round sum, several pieces per rank.
std::vector<int64_t> lengths(int ranks, DType dtype) {
  const auto element = static_cast<int64_t>(size_of(dtype));
  return {0, 1, ranks - 1, ranks + 1, 1021, 4096 / element, 4096 / element + 1, ranks * ((int64_t{140} << 10) / element) + 5};
}

void check_all_reduce(Comm& comm, DType dtype, int64_t n, uint64_t salt) {
  HostMemory memory;
  const Tensor t = memory.zeros(dtype, {n});
  fill(t, salt, comm.rank());
  comm.all_reduce(t);
  expect(comm, "all_reduce", t, [&](int64_t i) { return expected_sum(dtype, salt, comm.size(), i); });
}

void check_reduce_scatter(Comm& comm, DType dtype, int64_t rows, int64_t width, bool in_place, uint64_t salt) {
  HostMemory memory;
  const Tensor full = memory.zeros(dtype, {rows, width});
  fill(full, salt, comm.rank());
  const Part mine = part_of(rows, comm.rank(), comm.size());
  const Tensor own = in_place ? full.rows(mine.begin, mine.end()) : memory.zeros(dtype, {mine.count, width});
  const int64_t first = mine.begin * width, last = mine.end() * width;
  comm.reduce_scatter(own, full);
  expect(comm, "reduce_scatter", own, [&](int64_t i) { return expected_sum(dtype, salt, comm.size(), first + i); });
  const Tensor before = memory.zeros(dtype, {rows, width});
  fill(before, salt, comm.rank());
  expect(comm, "full after reduce_scatter", full,
         [&](int64_t i) { return in_place && first <= i && i < last ? load_f64(own, i - first) : load_f64(before, i); });
}

void check_all_gather(Comm& comm, DType dtype, int64_t rows, int64_t width, bool in_place, uint64_t salt) {
  HostMemory memory;
  const Tensor full = memory.zeros(dtype, {rows, width});
  const Part mine = part_of(rows, comm.rank(), comm.size());
  const Tensor own = in_place ? full.rows(mine.begin, mine.end()) : memory.zeros(dtype, {mine.count, width});
  fill(own, salt, comm.rank(), mine.begin * width);
  comm.all_gather(full, own);
  const Tensor want = memory.zeros(dtype, {rows, width});
  for (int r = 0; r < comm.size(); ++r) {
    const Part part = part_of(rows, r, comm.size());
    fill(want.rows(part.begin, part.end()), salt, r, part.begin * width);
  }
  expect(comm, "all_gather", full, [&](int64_t i) { return load_f64(want, i); });
}

void check_broadcast(Comm& comm, DType dtype, int64_t n, int root, uint64_t salt) {
  HostMemory memory;
  const Tensor t = memory.zeros(dtype, {n}), want = memory.zeros(dtype, {n});
  fill(t, salt, comm.rank());
  fill(want, salt, root);
  comm.broadcast(t, root);
  expect(comm, "broadcast", t, [&](int64_t i) { return load_f64(want, i); });
}

// Values of the host: of a size that is no multiple of a word, for all ranks.
void check_host_values(Comm& comm) {
  struct Value {
    std::array<char, 7> text{};
    bool operator==(const Value&) const = default;
  };
  const auto of = [](int rank) {
    return Value{{'r', 'a', 'n', 'k', static_cast<char>('a' + rank % 26), static_cast<char>(rank / 26), '.'}};
  };
  const std::vector<Value> all = all_gather_values(comm, of(comm.rank()));
  for (int r = 0; r < comm.size(); ++r) {
    if (all.size() != static_cast<size_t>(comm.size()) || all[static_cast<size_t>(r)] != of(r) ||
        broadcast_value(comm, of(comm.rank()), r) != of(r))
      fail("{}: rank {} of {} has another value of rank {}", comm.name(), comm.rank(), comm.size(), r);
  }
}

Tensor filled(HostMemory& memory, DType dtype, int64_t n, uint64_t salt, int rank) {
  const Tensor t = memory.zeros(dtype, {n});
  fill(t, salt, rank);
  return t;
}

// Gives a group its staging for the length of a check.
class Staged {
 public:
  explicit Staged(Comm& comm) : region_(memory_.region(Purpose::comm, staging_bytes(comm.size()))) { comm.reserve(region_); }

 private:
  HostMemory memory_;
  Region region_;
};

// The same calls on any group: `tensors` have memory or not.
void talk(Comm& comm, const std::function<Tensor(DType, Shape)>& tensor) {
  const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
  const Part mine = part_of(11, comm.rank(), comm.size());
  std::vector<std::byte> all(static_cast<size_t>(5 * comm.size()));
  comm.barrier();
  comm.all_reduce(tensor(DType::f32, {3}));
  comm.all_reduce(tensor(DType::bf16, {100003}));
  comm.reduce_scatter(tensor(DType::f32, {mine.count, 5000}), tensor(DType::f32, {11, 5000}));
  comm.all_gather(tensor(DType::i32, {11, 7}), tensor(DType::i32, {mine.count, 7}));
  for (int root = 0; root < comm.size(); ++root) comm.broadcast(tensor(DType::f64, {9}), root);
  comm.all_gather_bytes(all.data(), 3);
  comm.broadcast_bytes(all.data(), 5, comm.size() - 1);
  if (comm.size() == 1) return;
  Request r = comm.recv(tensor(DType::f32, {17}), before, 3);
  Request s = comm.send(tensor(DType::f32, {17}), next, 3);
  comm.wait(s);
  comm.wait(r);
}

void check_group(Comm& parent, Comm& group, const std::vector<int>& members) {
  const Staged staged(group);
  if (group.size() != static_cast<int>(members.size()) || members[static_cast<size_t>(group.rank())] != parent.rank()) {
    fail("{}: rank {} of the parent is rank {} of {}", group.name(), parent.rank(), group.rank(), group.size());
  }
  check_all_reduce(group, DType::f32, 1021, 40);
  check_all_reduce(group, DType::bf16, 5000, 41);
  check_all_gather(group, DType::i32, 2 * group.size() + 1, 3, true, 42);
  parent.barrier();
}

}  // namespace

size_t staging_bytes(int size) {
  Region region = Region::measuring(Purpose::comm);
  NullComm(0, size, "null").reserve(region);
  return region.high_water();
}

void check_sums(Comm& comm) {
  uint64_t salt = 0;
  for (const DType dtype : kTypes) {
    for (const int64_t n : lengths(comm.size(), dtype)) {
      check_all_reduce(comm, dtype, n, ++salt);
      for (const bool in_place : {false, true}) {
        check_reduce_scatter(comm, dtype, n, 1, in_place, ++salt);
        if (n < 2000) check_reduce_scatter(comm, dtype, n, 67, in_place, ++salt);
      }
    }
  }
  for (int repeat = 0; repeat < 20; ++repeat) check_all_reduce(comm, DType::f32, 1500, 7);  // every time the same bits
}

void check_gathers(Comm& comm) {
  check_host_values(comm);
  uint64_t salt = 1000;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i32, DType::f8e4m3, DType::f8e5m2}) {
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{comm.size() - 1}, int64_t{1021}}) {
      for (const bool in_place : {false, true}) {
        check_all_gather(comm, dtype, n, 1, in_place, ++salt);
        check_all_gather(comm, dtype, n, 129, in_place, ++salt);
      }
      for (int root = 0; root < comm.size(); ++root) check_broadcast(comm, dtype, n, root, ++salt);
    }
  }
}

void check_messages(Comm& comm) {
  if (comm.size() == 1) return;
  const int next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
  constexpr std::array<int64_t, 5> sizes = {1, 0, 5, 100000, 300000};  // the last are no longer sent eagerly
  constexpr std::array<int, 3> tags = {9, 0, kUserTags - 1};
  constexpr std::array<size_t, 3> backwards = {2, 0, 1};
  HostMemory memory;
  std::vector<Request> sends, receives;
  std::vector<std::function<void()>> checks;
  for (size_t k = 0; k < sizes.size(); ++k) {
    for (size_t t = 0; t < tags.size(); ++t) {
      sends.push_back(comm.send(filled(memory, DType::f32, sizes[k], 50 + 10 * k + t, comm.rank()), next, tags[t]));
    }
  }
  comm.barrier();  // collectives pass messages that are under way
  for (const size_t t : backwards) {
    for (size_t k = 0; k < sizes.size(); ++k) {
      const Tensor got = memory.zeros(DType::f32, {sizes[k]}), want = filled(memory, DType::f32, sizes[k], 50 + 10 * k + t, before);
      receives.push_back(comm.recv(got, before, tags[t]));
      checks.emplace_back([&comm, got, want] { expect(comm, "message", got, [&](int64_t i) { return load_f64(want, i); }); });
    }
  }
  for (Request& s : sends) comm.wait(s);  // before the receives: waiting for one message moves the others too
  for (size_t i = receives.size(); i-- > 0;) comm.wait(receives[i]);
  for (const auto& check : checks) check();
  comm.wait(sends.front());                                // nothing to wait for any more
  const Tensor odd = memory.zeros(DType::f8e4m3, {1001});  // bytes that are no whole words
  Request received = comm.recv(odd, before, 1), sent = comm.send(filled(memory, DType::f8e4m3, 1001, 90, comm.rank()), next, 1);
  comm.wait(sent);
  comm.wait(received);
  const Tensor want = filled(memory, DType::f8e4m3, 1001, 90, before);
  expect(comm, "message of FP8", odd, [&](int64_t i) { return load_f64(want, i); });
}

void check_split(Comm& comm) {
  std::vector<int> evens, odds, backwards;
  for (int r = 0; r < comm.size(); ++r) {
    (r % 2 == 0 ? evens : odds).push_back(r);
    backwards.insert(backwards.begin(), r);
  }
  const auto half = comm.split(comm.rank() % 2, comm.rank(), "half");
  const auto alone = comm.split(comm.rank(), 0, "alone");
  const auto reversed = comm.split(0, -comm.rank(), "reversed");
  check_group(comm, *half, comm.rank() % 2 == 0 ? evens : odds);
  check_group(comm, *alone, {comm.rank()});
  check_group(comm, *reversed, backwards);
  const auto quarter = half->split(half->rank() % 2, 0, "quarter");  // equal keys: in the parent's order
  std::vector<int> members;
  for (int r = comm.rank() % 4; r < comm.size(); r += 4) members.push_back(r);
  check_group(comm, *quarter, members);
}

void check_traffic(Comm& comm) {
  HostMemory memory;
  NullComm null(comm.rank(), comm.size(), comm.name());
  Region region = Region::measuring(Purpose::comm);
  null.reserve(region);
  comm.reset_traffic();
  talk(comm, [&](DType dtype, const Shape& shape) { return memory.zeros(dtype, shape); });
  talk(null, [](DType dtype, const Shape& shape) { return Tensor::contiguous(nullptr, dtype, shape); });
  for (int k = 0; k < kCommKinds; ++k) {
    const auto kind = static_cast<CommKind>(k);
    const CommCost &real = comm.traffic()[kind], &planned = null.traffic()[kind];
    if (real.calls != planned.calls || real.bytes != planned.bytes || (comm.size() > 1 && real.calls == 0)) {
      fail("{}: rank {} of {} made {} calls with {} bytes, planned {} with {}", name_of(kind), comm.rank(), comm.size(), real.calls,
           real.bytes, planned.calls, planned.bytes);
    }
  }
}

void check_all(Comm& comm) {
  const Staged staged(comm);
  check_sums(comm);
  check_gathers(comm);
  check_messages(comm);
  check_split(comm);
  check_traffic(comm);
  comm.barrier();
}

}  // namespace hlat::test
