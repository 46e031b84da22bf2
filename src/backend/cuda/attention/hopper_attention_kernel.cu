// The Hopper attention backward.
//
// A block has 128 keys (and values) of one kv head and goes over all queries that see them, of all query heads that share the kv head,
// from the last query backwards. Scores stand transposed, keys as rows, so that weights leave one product in the registers where the
// next one wants them:
//   s = k q^T, dp = v do^T;  p = exp(s - lse), ds = p (dp - delta);  dv += p do, dk += ds q  (p and ds from registers)
//   dq = ds^T k  (ds through shared memory, since it sums over all keys of the block)
// Two warpgroups compute, 64 keys each. A third has one warp that loads tiles by TMA and two that add dq to a sum in global memory, in f32.
//
// Blocks of different keys add to the same dq, lower keys first, one after the other by a semaphore for each tile of queries: sums have one
// order, and equal calls give equal bits. Blocks are numbered as they start and take lower keys first, so that whoever is waited for is
// under way; all walk the same way, so that semaphores are rarely waited for.
#include "backend/cuda/attention/hopper_attention.cuh"

namespace hlat::hopper {

namespace {

constexpr int kThreads = 3 * 128;  // loader and adders, and two warpgroups that compute
constexpr int kTileRow = 128;      // bytes of a row of 64
constexpr int kStages = 3;         // of queries: the scores of the next step are computed while dk still needs those of this one

// Where things lie in shared memory: bytes from its start. Each warpgroup has two buffers of dq. number: the block's, as it started.
template <int kHead>
struct Shared {
  static constexpr uint32_t kTile = kQueries<kHead> * kHead * 2, kBlock = kKeys * kHead * 2, kScores = kKeys * kQueries<kHead> * 2;
  static constexpr uint32_t k = 0, v = k + kBlock, q = v + kBlock, dout = q + kStages * kTile, ds = dout + 2 * kTile, dq = ds + kScores,
                            lse = dq + 4 * kPart * 4, delta = lse + kStages * kQueries<kHead> * 4,
                            barriers = delta + 2 * kQueries<kHead> * 4;
  static constexpr uint32_t keys_full = barriers, q_full = keys_full + 8, q_free = q_full + 8 * kStages, dout_full = q_free + 8 * kStages,
                            dout_free = dout_full + 16, ds_full = dout_free + 16, ds_free = ds_full + 8, dq_full = ds_free + 8,
                            dq_free = dq_full + 32, number = dq_free + 32, bytes = number + 8;
};

// What a block does: its keys and the tiles of queries, of which it takes one at each step.
template <int kHead>
struct Walk {
  int batch, kv, block, group, tiles, steps;
  __device__ Walk(const BackwardCall& c, int index) {
    const int blocks = static_cast<int>(c.padded / kKeys);
    const int base = index / (c.together * blocks) * c.together, count = min(c.together, c.units - base);
    const int rest = index - base * blocks, unit = base + rest % count;
    block = rest / count;
    batch = unit / c.kv_heads;
    kv = unit % c.kv_heads;
    group = c.heads / c.kv_heads;
    tiles = static_cast<int>(c.padded / kQueries<kHead>);
    steps = group * (tiles - block * kKeys / kQueries<kHead>);
  }
  __device__ int head(int step) const { return kv * group + step % group; }
  __device__ int tile(int step) const { return tiles - 1 - step / group; }
};

template <int kHead>
__device__ void load(const BackwardCall& c, uint32_t s, const Walk<kHead>& walk) {
  using At = Shared<kHead>;
  constexpr int kQ = kQueries<kHead>;
  barrier_expect(s + At::keys_full, 2 * At::kBlock);
  for (int part = 0; part < kHead / 64; ++part) {
    load_tile(s + At::k + part * kKeys * kTileRow, &c.k, s + At::keys_full, 64 * part, walk.block * kKeys, walk.kv, walk.batch);
    load_tile(s + At::v + part * kKeys * kTileRow, &c.v, s + At::keys_full, 64 * part, walk.block * kKeys, walk.kv, walk.batch);
  }
  int q_stage = 0, q_phase = 0;
#pragma unroll 1
  for (int step = 0; step < walk.steps; ++step) {
    const int stage = step % 2, head = walk.head(step), query = walk.tile(step) * kQ;
    const int64_t stat = (static_cast<int64_t>(walk.batch) * c.heads + head) * c.padded + query;
    const uint32_t q_full = s + At::q_full + 8 * q_stage, dout_full = s + At::dout_full + 8 * stage;
    barrier_wait(s + At::q_free + 8 * q_stage, q_phase ^ 1);
    barrier_expect(q_full, At::kTile + kQ * 4);
    for (int part = 0; part < kHead / 64; ++part)
      load_tile(s + At::q + q_stage * At::kTile + part * kQ * kTileRow, &c.q, q_full, 64 * part, query, head, walk.batch);
    load_bytes(s + At::lse + q_stage * kQ * 4, c.lse + stat, kQ * 4, q_full);
    if (++q_stage == kStages) q_stage = 0, q_phase ^= 1;
    barrier_wait(s + At::dout_free + 8 * stage, (step / 2 + 1) % 2);
    barrier_expect(dout_full, At::kTile + kQ * 4);
    for (int part = 0; part < kHead / 64; ++part)
      load_tile(s + At::dout + stage * At::kTile + part * kQ * kTileRow, &c.dout, dout_full, 64 * part, query, head, walk.batch);
    load_bytes(s + At::delta + stage * kQ * 4, c.delta + stat, kQ * 4, dout_full);
  }
}

// Adds what warpgroup `who` computes of dq, when the blocks of lower keys have added theirs.
template <int kHead>
__device__ void add_queries(const BackwardCall& c, uint32_t s, const Walk<kHead>& walk, int who) {
  using At = Shared<kHead>;
#pragma unroll 1
  for (int step = 0; step < walk.steps; ++step) {
    const int64_t head = static_cast<int64_t>(walk.batch) * c.heads + walk.head(step);
    const int64_t part = (head * walk.tiles + walk.tile(step)) * 2 + who;
    const int buffer = 2 * who + step % 2;
    const uint32_t from = s + At::dq + buffer * kPart * 4;
    barrier_wait(s + At::dq_full + 8 * buffer, step / 2 % 2);
    if (walk.block == 0) {
      store_bytes(c.dq + part * kPart, from, kPart * 4);
    } else {
      int added;  // blocks
      do {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(added) : "l"(c.dq_semaphore + part) : "memory");
      } while (added != walk.block);
      publish_global();
      add_floats(c.dq + part * kPart, from, kPart * 4);
    }
    stores_commit();
    stores_wait_read();
    barrier_arrive(s + At::dq_free + 8 * buffer);
    stores_wait();
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(c.dq_semaphore + part), "r"(walk.block + 1) : "memory");
  }
}

// Where a row's 16-byte piece lies in a tile of `rows` rows and any number of columns.
__device__ inline uint32_t piece_at(int row, int piece, int rows) {
  return piece / 8 * rows * kTileRow + row * kTileRow + ((piece % 8) ^ (row % 8)) * 16;
}

// The inverse RoPE of rows from token `first` on, which lie as a product leaves them.
template <int kHead>
__device__ void inverse_rope_rows(const BackwardCall& c, float (&x)[kHead / 2], int64_t first) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kHead / 4; i += 2) {
    const int64_t token = first + threadIdx.x % 128 / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
    if (token >= c.seq) continue;
    float2 low = make_float2(x[i], x[i + 1]), high = make_float2(x[i + kHead / 4], x[i + kHead / 4 + 1]);
    inverse_rope<kHead>(low, high, c.rope + token * kHead + i / 4 * 8 + lane % 4 * 2);
    x[i] = low.x, x[i + 1] = low.y, x[i + kHead / 4] = high.x, x[i + kHead / 4 + 1] = high.y;
  }
}

// 64 rows of dk or dv from token `first` on to global memory; through shared memory, a warp its own 16 rows.
template <int kHead>
__device__ void store_rows(const BackwardCall& c, const float (&x)[kHead / 2], float scale, uint32_t shared, int64_t batch, int64_t first,
                           int64_t head) {
  constexpr int kPieces = kHead / 8;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4, lane = static_cast<int>(threadIdx.x) % 32;
  __syncwarp();
#pragma unroll
  for (int k = 0; k < kHead / 16; ++k) {
    uint32_t piece[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) piece[i] = pack_bf16(x[8 * k + 2 * i] * scale, x[8 * k + 2 * i + 1] * scale);
    store_matrix(shared + piece_at(16 * warp + lane % 16, 2 * k + lane / 16, 64), piece);
  }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < kHead / 16; ++k) {
    const int piece = lane % kPieces, row = 16 * warp + 32 / kPieces * k + lane / kPieces;
    const uint4 content = load_piece(shared + piece_at(row, piece, 64));
    if (first + row < c.seq) *reinterpret_cast<uint4*>(gradient_at<kHead>(c, batch, first + row, head) + 8 * piece) = content;
  }
}

// Transposed scores of 64 keys: keys queries^T.
template <int kHead>
__device__ __forceinline__ void scores(float (&x)[kQueries<kHead> / 2], uint32_t keys, uint32_t queries) {
#pragma unroll
  for (int k = 0; k < kHead / 16; ++k)
    multiply<false, false>(x, tile_of(keys + k / 4 * kKeys * kTileRow + k % 4 * 32),
                           tile_of(queries + k / 4 * kQueries<kHead> * kTileRow + k % 4 * 32), k > 0);
  products_commit();
}

// Adds weights (64 keys by queries, in registers) times a tile of queries.
template <int kHead>
__device__ __forceinline__ void add_weighted(float (&x)[kHead / 2], const uint32_t (&weight)[kQueries<kHead> / 16][4], uint32_t queries) {
#pragma unroll
  for (int k = 0; k < kQueries<kHead> / 16; ++k)
    multiply<true>(x, weight[k], tile_of(queries + k * 16 * kTileRow, kQueries<kHead> * kTileRow));
  products_commit();
}

// This warpgroup's part of dq, from ds of both.
template <int kHead>
__device__ __forceinline__ void query_gradient(float (&dq)[32], uint32_t ds, uint32_t keys, int who) {
  const uint32_t by_query = ds + (kHead == 64 ? who : 0) * kKeys * kTileRow, by_head = keys + (kHead == 64 ? 0 : who) * kKeys * kTileRow;
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k)
    multiply<true, true>(dq, tile_of(by_query + k * 16 * kTileRow), tile_of(by_head + k * 16 * kTileRow), k > 0);
  products_commit();
}

// Hands the part of dq of step number `count` to the warp that adds it.
template <int kHead>
__device__ __forceinline__ void hand_over(const float (&dq)[32], uint32_t s, int count, int who) {
  using At = Shared<kHead>;
  const int buffer = 2 * who + count % 2;
  barrier_wait(s + At::dq_free + 8 * buffer, (count / 2 + 1) % 2);
  const uint32_t to = s + At::dq + buffer * kPart * 4 + threadIdx.x % 128 * 16;
#pragma unroll
  for (int i = 0; i < 8; ++i) store_four(to + 128 * 16 * i, dq + 4 * i);
  publish_shared();
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive(s + At::dq_full + 8 * buffer);
}

// The products of a step are queued so that some are under way while the warpgroup computes: dk of the step before under the
// exponentials, dv under ds, the next scores and dq under the exchange of ds. The two warpgroups meet at that exchange.
template <int kHead>
__device__ __forceinline__ void compute(const BackwardCall& c, uint32_t s, const Walk<kHead>& walk, int who) {
  using At = Shared<kHead>;
  constexpr int kQ = kQueries<kHead>;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = 64 * who + 16 * warp + lane / 4, column = lane % 4 * 2;  // of the first score
  const float scale = c.scale * kLog2e;
  const uint32_t own = 64 * who * kTileRow;
  float dk[kHead / 2] = {}, dv[kHead / 2] = {}, p[kQ / 2], dq[32];
  barrier_wait(s + At::keys_full, 0);
  barrier_wait(s + At::q_full, 0);
  products_begin();
  scores<kHead>(p, s + At::k + own, s + At::q);
  products_wait<0>();
  int q_stage = 0, q_phase = 0, tile = walk.tiles - 1, member = 0;
#pragma unroll 1
  for (int step = 0; step < walk.steps; ++step) {
    const int stage = step % 2, phase = step / 2 % 2;
    const int next = q_stage == kStages - 1 ? 0 : q_stage + 1, next_phase = q_phase ^ (next == 0 ? 1 : 0);
    const uint32_t dout = s + At::dout + stage * At::kTile;
    const int query = tile * kQ - walk.block * kKeys;
    if (++member == walk.group) member = 0, --tile;
    if (query < kKeys) {
#pragma unroll
      for (int i = 0; i < kQ / 2; ++i)
        if (query + i / 4 * 8 + column + i % 2 < row + i / 2 % 2 * 8) p[i] = -INFINITY;
    }
    uint32_t packed[kQ / 16][4];
#pragma unroll
    for (int j = 0; j < kQ / 8; ++j) {
      const float2 lse = load_two(s + At::lse + (q_stage * kQ + 8 * j + column) * 4);
#pragma unroll
      for (int i = 0; i < 4; ++i) p[4 * j + i] = exp2_fast(p[4 * j + i] * scale - (i % 2 == 0 ? lse.x : lse.y));
      packed[j / 2][j % 2 * 2] = pack_bf16(p[4 * j], p[4 * j + 1]);
      packed[j / 2][j % 2 * 2 + 1] = pack_bf16(p[4 * j + 2], p[4 * j + 3]);
    }
    products_wait<0>();  // dk of the step before
    __syncwarp();
    if (step > 0 && lane == 0) barrier_arrive(s + At::q_free + 8 * (q_stage == 0 ? kStages - 1 : q_stage - 1));
    barrier_wait(s + At::dout_full + 8 * stage, phase);
    float ds[kQ / 2];
    products_begin();
    scores<kHead>(ds, s + At::v + own, dout);
    add_weighted<kHead>(dv, packed, dout);
    products_wait<1>();  // dp
    uint32_t weight[kQ / 16][4];
#pragma unroll
    for (int j = 0; j < kQ / 8; ++j) {
      const float2 delta = load_two(s + At::delta + (stage * kQ + 8 * j + column) * 4);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t two = packed[j / 2][j % 2 * 2 + i / 2];
        ds[4 * j + i] = __uint_as_float(i % 2 == 0 ? two << 16 : two & 0xffff0000u) * (ds[4 * j + i] - (i % 2 == 0 ? delta.x : delta.y));
      }
      weight[j / 2][j % 2 * 2] = pack_bf16(ds[4 * j], ds[4 * j + 1]);
      weight[j / 2][j % 2 * 2 + 1] = pack_bf16(ds[4 * j + 2], ds[4 * j + 3]);
    }
    products_wait<0>();  // dv
    __syncwarp();
    if (lane == 0) barrier_arrive(s + At::dout_free + 8 * stage);
    if (step + 1 < walk.steps) barrier_wait(s + At::q_full + 8 * next, next_phase);
    products_begin();
    scores<kHead>(p, s + At::k + own, s + At::q + next * At::kTile);  // of the next step; after the last one of nothing that is used
    if (step > 0) barrier_wait(s + At::ds_free, (step + 1) % 2);
#pragma unroll
    for (int k = 0; k < kQ / 16; ++k)
      store_matrix(s + At::ds + piece_at(64 * who + 16 * warp + lane % 16, 2 * k + lane / 16, kKeys), weight[k]);
    publish_shared();
    __syncwarp();
    if (lane == 0) barrier_arrive(s + At::ds_full);
    barrier_wait(s + At::ds_full, step % 2);
    products_begin();
    query_gradient<kHead>(dq, s + At::ds, s + At::k, who);
    add_weighted<kHead>(dk, weight, s + At::q + q_stage * At::kTile);
    products_wait<1>();  // the next scores and dq
    if (lane == 0) barrier_arrive(s + At::ds_free);
    hand_over<kHead>(dq, s, step, who);
    q_stage = next;
    q_phase = next_phase;
  }
  products_wait<0>();
  const int last = 2 * who + (walk.steps - 1) % 2;
  barrier_wait(s + At::dq_free + 8 * last, (walk.steps - 1) / 2 % 2);
  warpgroup_sync(who);
  const int64_t first = static_cast<int64_t>(walk.block) * kKeys + 64 * who, head = c.heads + walk.kv;
  const uint32_t through = s + At::dq + last * kPart * 4;
  store_rows<kHead>(c, dv, 1, through, walk.batch, first, head + c.kv_heads);
  if (c.rope != nullptr) inverse_rope_rows<kHead>(c, dk, first);
  store_rows<kHead>(c, dk, c.scale, through, walk.batch, first, head);
}

template <int kHead>
__global__ void __launch_bounds__(kThreads, 1) backward(const __grid_constant__ BackwardCall c) {
  using At = Shared<kHead>;
  extern __shared__ unsigned char raw[];
  const uint32_t s = (shared_address(raw) + 1023) / 1024 * 1024;
  if (threadIdx.x == 0) {
    barrier_init(s + At::keys_full, 1);
    for (int i = 0; i < kStages; ++i) {
      barrier_init(s + At::q_full + 8 * i, 1);
      barrier_init(s + At::q_free + 8 * i, 8);
    }
    for (int i = 0; i < 2; ++i) {
      barrier_init(s + At::dout_full + 8 * i, 1);
      barrier_init(s + At::dout_free + 8 * i, 8);
    }
    barrier_init(s + At::ds_full, 8);
    barrier_init(s + At::ds_free, 8);
    for (int i = 0; i < 4; ++i) {
      barrier_init(s + At::dq_full + 8 * i, 4);
      barrier_init(s + At::dq_free + 8 * i, 1);
    }
    barrier_init_visible();
    store_number(s + At::number, atomicAdd(c.started, 1));
  }
  __syncthreads();
  const Walk<kHead> walk(c, __shfl_sync(0xffffffffu, load_number(s + At::number), 0));
  const int warpgroup = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
  if (warpgroup == 0) {
    registers_fewer<24>();
    if (threadIdx.x == 0) load<kHead>(c, s, walk);
    if (threadIdx.x == 32) add_queries<kHead>(c, s, walk, 0);
    if (threadIdx.x == 64) add_queries<kHead>(c, s, walk, 1);
  } else {
    registers_more<240>();
    compute<kHead>(c, s, walk, warpgroup - 1);
  }
}

template <int kHead>
cudaError_t launch_backward(cudaStream_t stream, const BackwardCall& c) {
  constexpr int kBytes = Shared<kHead>::bytes + 1024;
  return launch_shared(backward<kHead>, c.units * (c.padded / kKeys), kThreads, kBytes, stream, c);
}

}  // namespace

cudaError_t go_over_keys(cudaStream_t stream, const OwnAttention& x, const BackwardCall& c) {
  return x.head_dim == 64 ? launch_backward<64>(stream, c) : launch_backward<128>(stream, c);
}

}  // namespace hlat::hopper
