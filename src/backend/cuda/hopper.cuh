// Words for what Hopper (sm_90a) has beyond earlier GPUs: products of whole warpgroups from shared memory (wgmma), copies of tiles by a
// unit of their own (TMA, "bulk"), and barriers that count the bytes of such copies.
//
// Tiles in shared memory have rows of 64 bf16, 128 bytes, whose eight 16-byte pieces are exchanged by the row: piece p of row r lies at
// p ^ (r % 8). TMA writes them so, wgmma reads them so, and neither meets a bank twice. A tile starts at a multiple of 1024 bytes.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace hlat::hopper {

// Addresses in shared memory are 32 bits.
__device__ inline uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ inline float2 load_two(uint32_t from) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from) : "memory");
  return x;
}
__device__ inline void store_four(uint32_t to, const float* x) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]) : "memory");
}
__device__ inline int load_number(uint32_t from) {
  int x;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
  return x;
}
__device__ inline void store_number(uint32_t to, int x) { asm volatile("st.shared.s32 [%0], %1;" ::"r"(to), "r"(x) : "memory"); }
__device__ inline uint4 load_piece(uint32_t from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from) : "memory");
  return x;
}

// ---- barriers

__device__ inline void barrier_init(uint32_t b, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(count) : "memory");
}
__device__ inline void barrier_init_visible() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void barrier_arrive(uint32_t b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory"); }
// Arrives, and the phase ends only after so many bytes of copies.
__device__ inline void barrier_expect(uint32_t b, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory");
}
__device__ inline void barrier_wait(uint32_t b, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(b),
      "r"(parity)
      : "memory");
}

// The 128 threads of a warpgroup wait for each other; `which` of 15 such barriers.
__device__ inline void warpgroup_sync(int which) { asm volatile("bar.sync %0, 128;" ::"r"(which + 1) : "memory"); }

// What this thread wrote to shared memory is seen by wgmma and TMA after the next barrier.
__device__ inline void publish_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// What this thread has seen of global memory comes before its next copies.
__device__ inline void publish_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// ---- copies

__device__ inline void load_tile(uint32_t to, const CUtensorMap* map, uint32_t b, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
               "l"(map), "r"(b), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}
__device__ inline void load_bytes(uint32_t to, const void* from, uint32_t bytes, uint32_t b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
               "r"(b)
               : "memory");
}
__device__ inline void store_bytes(void* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
__device__ inline void add_floats(float* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
__device__ inline void stores_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void stores_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ inline void stores_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// ---- products

template <int kCount>
__device__ inline void registers_more() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ inline void registers_fewer() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

// A tile as wgmma reads it. Along rows of 64: the next 8 rows are 1024 bytes on. `column_stride`: bytes to the next 64 columns, for
// products that take the columns as m or n.
__device__ inline uint64_t tile_of(uint32_t address, uint32_t column_stride = 16) {
  constexpr uint64_t kRest = uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
  return kRest | ((address >> 4) + (column_stride >> 4 << 16));  // an address has 18 bits where blocks form no clusters
}

__device__ inline void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ inline void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

#define HLAT_F8(x, i) \
  "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3]), "+f"(x[i + 4]), "+f"(x[i + 5]), "+f"(x[i + 6]), "+f"(x[i + 7])
#define HLAT_F32(x, i) HLAT_F8(x, i), HLAT_F8(x, i + 8), HLAT_F8(x, i + 16), HLAT_F8(x, i + 24)

// c (64 x n) = a b, or c += a b with add, over 16 terms. Transposed: the tile's rows are the terms, its columns m or n.
template <bool kTransA, bool kTransB>
__device__ inline void multiply(float (&c)[32], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, %35, %36;\n"
      "}"
      : HLAT_F32(c, 0)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(kTransA ? 1 : 0), "n"(kTransB ? 1 : 0));
}
template <bool kTransA, bool kTransB>
__device__ inline void multiply(float (&c)[64], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, %67, %68;\n"
      "}"
      : HLAT_F32(c, 0), HLAT_F32(c, 32)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(kTransA ? 1 : 0), "n"(kTransB ? 1 : 0));
}
// The same with a in registers, c += a b: lane 4 g + t of warp w holds columns 2t, 2t + 1 of rows 16 w + g and + 8, then columns + 8.
template <bool kTransB>
__device__ inline void multiply(float (&c)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, 1, 1, 1, %37;\n"
      : HLAT_F32(c, 0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kTransB ? 1 : 0));
}
template <bool kTransB>
__device__ inline void multiply(float (&c)[64], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1, 1, 1, %69;\n"
      : HLAT_F32(c, 0), HLAT_F32(c, 32)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kTransB ? 1 : 0));
}
#undef HLAT_F8
#undef HLAT_F32

// Four 8 x 8 pieces of 16-bit elements; lane l gives the address of row l % 8 of piece l / 8.
__device__ inline void store_matrix(uint32_t to, const uint32_t (&x)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
               : "memory");
}

}  // namespace hlat::hopper
