#include "backend/cpu/cache_packed.h"

#include <array>
#include <cstring>
#include <vector>

#include "base/ceil_div.h"

namespace hlat {

namespace {

constexpr int64_t kPackTiles = 8;    // of one item of packing
constexpr int64_t kPairsAtOnce = 4;  // (segment, kv head) whose keys are packed at a time, for each thread

// Where things lie in scratch, in floats.
struct PackedLayout {
  int64_t pairs, packed, k_tiles, v_rows, work, work_each, total;

  PackedLayout(int64_t segments, const CacheShape& s, const CpuKernels& k, int threads, int type) {
    const auto whole = [](int64_t floats) { return (floats + 15) / 16 * 16; };
    pairs = std::min<int64_t>(segments * s.kv_heads, kPairsAtOnce * threads);
    packed = whole(k.attention_packed[type](s.max_keys, s.head_dim));
    k_tiles = 0;
    v_rows = pairs * packed;
    work = 2 * pairs * packed;
    const int64_t gathered = kTile * 2 * s.head_dim;
    work_each = whole(std::max(k.attention_forward_work[type](s.head_dim), gathered));
    total = work + work_each * threads;
  }
};

struct Pair {
  const KvSegment* segment;
  int64_t kv;
  int64_t tiles() const { return ceil_div(segment->keys, kTile); }
};

class PackedAttention {
 public:
  PackedAttention(const CacheCall& call, const PackedLayout& lay) : call_(call), lay_(lay) {}
  void run(std::span<const Pair> pairs) const;

 private:
  struct Item {
    size_t place;  // of the pair
    int64_t head, tile;
  };

  float* k_tiles(size_t place) const { return call_.scratch + lay_.k_tiles + static_cast<int64_t>(place) * lay_.packed; }
  float* v_rows(size_t place) const { return call_.scratch + lay_.v_rows + static_cast<int64_t>(place) * lay_.packed; }
  float* work(int thread) const { return call_.scratch + lay_.work + thread * lay_.work_each; }
  void pack_tile(const Pair& pair, const Item& item, int thread) const;
  void attend(const Pair& pair, const Item& item, int thread) const;

  const CacheCall& call_;
  const PackedLayout& lay_;
};

void PackedAttention::run(std::span<const Pair> pairs) const {
  std::vector<Item> packing, queries;
  for (size_t p = 0; p < pairs.size(); ++p) {
    const Pair& pair = pairs[p];
    for (int64_t tile = 0; tile < pair.tiles(); tile += kPackTiles) packing.push_back({p, 0, tile});
    for (int64_t tile = (pair.segment->keys - pair.segment->count) / kTile; tile < pair.tiles(); ++tile)
      for (int64_t h = 0; h < call_.group(); ++h) queries.push_back({p, pair.kv * call_.group() + h, tile});
  }
  call_.threads.items(static_cast<int64_t>(packing.size()), [&](int64_t i, int thread) {
    Item item = packing[static_cast<size_t>(i)];
    const Pair& pair = pairs[item.place];
    for (const int64_t end = std::min(item.tile + kPackTiles, pair.tiles()); item.tile < end; ++item.tile) pack_tile(pair, item, thread);
  });
  // The longest first: they leave less waiting at the end.
  std::stable_sort(queries.begin(), queries.end(), [](const Item& a, const Item& b) { return a.tile > b.tile; });
  call_.threads.items(static_cast<int64_t>(queries.size()), [&](int64_t i, int thread) {
    const Item& item = queries[static_cast<size_t>(i)];
    attend(pairs[item.place], item, thread);
  });
}

// A tile whose keys do not lie one after the other is gathered first.
void PackedAttention::pack_tile(const Pair& pair, const Item& item, int thread) const {
  const CacheShape& s = call_.s;
  std::array<int32_t, kTile> slots{};
  const int64_t first = item.tile * kTile, count = std::min<int64_t>(kTile, pair.segment->keys - first);
  find_slots(slots.data(), *pair.segment, first, first + count);
  bool together = true;
  for (size_t j = 1; j < static_cast<size_t>(count); ++j) together &= slots[j] == slots[j - 1] + 1;
  AttentionPackArgs args{};
  args.seq = count;
  args.head_dim = s.head_dim;
  args.first_tile = item.tile;
  args.k_tiles = k_tiles(item.place);
  args.v_rows = v_rows(item.place);
  if (together) {
    args.qkv = call_.key_of(slots[0], pair.kv);
    args.row = s.cache_width();
    args.v_offset = s.kv_heads * s.head_dim;
  } else {
    const size_t bytes = static_cast<size_t>(s.head_dim) * size_of(call_.cache.dtype);
    auto* to = reinterpret_cast<std::byte*>(work(thread));
    args.qkv = to;
    args.row = 2 * s.head_dim;
    args.v_offset = s.head_dim;
    for (size_t j = 0; j < static_cast<size_t>(count); ++j, to += 2 * bytes) {
      std::memcpy(to, call_.key_of(slots[j], pair.kv), bytes);
      std::memcpy(to + bytes, call_.value_of(slots[j], pair.kv), bytes);
    }
  }
  call_.kernels.attention_pack[call_.type()](args);
}

// Query tiles begin at multiples of kTile of the position, so that a query sees only its own tile in part.
void PackedAttention::attend(const Pair& pair, const Item& item, int thread) const {
  const KvSegment& g = *pair.segment;
  const int64_t before = g.keys - g.count;
  AttentionForwardArgs args{};
  args.first = std::max(before, item.tile * kTile);
  args.rows = std::min<int64_t>(g.keys, (item.tile + 1) * kTile) - args.first;
  const int64_t token = g.first + args.first - before;
  args.q = call_.query_of(token, item.head);
  args.q_row = call_.s.qkv_width();
  args.head_dim = call_.s.head_dim;
  args.k_tiles = k_tiles(item.place);
  args.v_rows = v_rows(item.place);
  args.scale = call_.scale();
  args.out = call_.out_of(token, item.head);
  args.out_row = call_.s.out_width();
  args.work = work(thread);
  call_.kernels.attention_forward[call_.type()](args);
}

}  // namespace

int64_t packed_cache_floats(int64_t segments, const CacheShape& s, const CpuKernels& kernels, int threads, int type) {
  return s.max_queries > kFewQueries ? PackedLayout(segments, s, kernels, threads, type).total : 0;
}

void packed_cache_attention(const CacheCall& call, std::span<const KvSegment* const> segments) {
  std::vector<Pair> pairs;
  for (const KvSegment* g : segments)
    for (int64_t kv = 0; kv < call.s.kv_heads; ++kv) pairs.push_back({g, kv});
  const PackedLayout lay(static_cast<int64_t>(segments.size()), call.s, call.kernels, call.threads.count(), call.type());
  const auto at_once = static_cast<size_t>(lay.pairs);
  for (size_t i = 0; i < pairs.size(); i += at_once) PackedAttention(call, lay).run({&pairs[i], std::min(at_once, pairs.size() - i)});
}

}  // namespace hlat
