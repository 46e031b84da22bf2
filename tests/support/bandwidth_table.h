// Rows of a table: what a memory-bound op moves per second, held against a copy on the same machine. Bytes are what the Ops front counts
// (each argument once), time is the mean of repetitions queued one behind the other. On the GPU if there is one, else on the CPU.
#pragma once

#include <chrono>

#include "support/test_device.h"

namespace hlat {

class Table {
 public:
  Table(Backend& backend, size_t bytes, size_t temp_bytes)
      : device_(backend.device()),
        block_(device_.allocate(bytes)),
        temp_block_(device_.allocate(temp_bytes)),
        data_(Purpose::weight, block_, bytes),
        temp_(Purpose::temp, temp_block_, temp_bytes),
        ops_(backend.make_ops(temp_)) {}
  ~Table() {
    device_.free(block_);
    device_.free(temp_block_);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  Region& data() { return data_; }
  Tensor empty(DType dtype, const Shape& shape) { return data_.alloc(dtype, shape, "bench"); }
  Tensor random(DType dtype, const Shape& shape, double std = 1) {
    const Tensor t = empty(dtype, shape);
    ops_->fill_normal(t, std, {.seed = ++seed_});
    return t;
  }
  Tensor ids(int64_t count, int64_t below) {
    std::vector<int32_t> host(static_cast<size_t>(count));
    RandomStream stream({.seed = ++seed_});
    // One in twenty is the same token, as frequent words are.
    for (int32_t& id : host) id = stream.below(20) == 0 ? 5 : static_cast<int32_t>(stream.below(static_cast<uint64_t>(below)));
    return upload(DType::i32, {count}, host.data());
  }
  Tensor upload(DType dtype, const Shape& shape, const void* host) {
    const Tensor t = empty(dtype, shape);
    device_.upload(t, host);
    return t;
  }

  // Prints a row; the first is what the others are held against.
  template <class Body>
  void row(const char* name, const Body& body) {
    for (int i = 0; i < 2; ++i) body(*ops_);
    ops_->finish();
    ops_->reset_cost();
    const auto start = std::chrono::steady_clock::now();
    int count = 0;
    do {
      for (int i = 0; i < 10; ++i, ++count) body(*ops_);
      ops_->finish();
    } while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(40));
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / count;
    double bytes = 0;
    for (const OpCost& c : ops_->cost().op) bytes += c.bytes / count;
    const double rate = bytes / s;
    if (copy_ == 0) copy_ = rate;
    fmt::print("{:<34} {:>9.1f} us {:>9.1f} MB {:>8.0f} GB/s {:>6.0f}%\n", name, s * 1e6, bytes * 1e-6, rate * 1e-9, 100 * rate / copy_);
  }

 private:
  Device& device_;
  std::byte *block_, *temp_block_;
  Region data_, temp_;
  std::unique_ptr<Ops> ops_;
  uint64_t seed_ = 0;
  double copy_ = 0;
};

inline std::unique_ptr<Backend> bench_backend() {
  auto backend = cuda_backend(false);
  return backend != nullptr ? std::move(backend) : cpu_device().make();
}

// The copy of so many bytes: the first row.
inline void copy_row(Table& t, int64_t bytes) {
  const Scope scope(t.data());
  const Tensor a = t.random(DType::f32, {bytes / 4}), b = t.empty(DType::f32, {bytes / 4});
  t.row("copy", [&](Ops& o) { o.cast(b, a); });
}

}  // namespace hlat
