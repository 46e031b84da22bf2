// What inference needs of the GPU beyond the conformance table: recorded calls that serve other lengths, and the kernels of attention over
// a cache against each other.
#include <gtest/gtest.h>

#include <cmath>

#include "support/test_device.h"

namespace hlat {
namespace {

constexpr DType f32 = DType::f32, b16 = DType::bf16;

struct Text {
  int32_t queries, keys;
};

class InferenceOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    backend_ = cuda_backend(false);
    if (backend_ == nullptr) GTEST_SKIP() << "no GPU: inference on one is not tested";
    block_ = device().allocate(2 * kBytes);
    data_ = Region(Purpose::saved, block_, kBytes);
    temp_ = Region(Purpose::temp, block_ + kBytes, kBytes);
    ops_ = backend_->make_inference_ops(temp_);
  }
  void TearDown() override {
    if (block_ != nullptr) device().free(block_);
  }
  Device& device() { return backend_->device(); }
  static bool is_hopper() {
#ifdef HLAT_HAVE_CUDA
    return gpu_facts(0).major == 9;
#else
    return false;
#endif
  }

  Tensor empty(DType dtype, const Shape& shape) { return data_.alloc(dtype, shape, "t"); }
  Tensor normal(DType dtype, const Shape& shape, uint64_t stream) {
    const Tensor t = empty(dtype, shape);
    ops_->fill_normal(t, 1, {.seed = 11, .stream = stream});
    return t;
  }
  Tensor upload(const Shape& shape, const std::vector<int32_t>& host) {
    const Tensor t = empty(DType::i32, shape);
    device().upload(t, host.data());
    return t;
  }
  Tensor in_f32(const Tensor& t) {
    const Tensor wide = empty(f32, t.shape);
    ops_->cast(wide, t);
    return wide;
  }
  std::vector<float> values(const Tensor& t) {
    const Scope scope(data_);
    const Tensor wide = in_f32(t);
    std::vector<float> host(static_cast<size_t>(t.numel()));
    device().download(host.data(), wide);
    return host;
  }

  // Segments of texts whose keys lie in up to four runs that are scattered over the cache, each with `room` slots. The rows of their tokens
  // follow each other.
  static std::vector<int32_t> segments_of(const std::vector<Text>& texts, int32_t room) {
    std::vector<int32_t> ints;
    int32_t first = 0, text = 0;
    for (const Text& t : texts) {
      const int32_t base = text++ * room;
      const std::array<int32_t, 3> lengths = {t.keys / 3, t.keys / 3 == 0 ? 0 : 5, t.keys / 4};
      KvSegment s{.first = first, .count = t.queries, .keys = t.keys};
      int32_t end = 0, slot = base + room;  // from the back, so that no run continues another
      for (size_t r = 0; r < kKeyRuns; ++r) {
        const int32_t length = r < 3 ? std::min(lengths[r], t.keys - end) : t.keys - end;
        slot -= length + 1;
        end += length;
        s.run_slot[r] = slot;
        s.run_end[r] = end;
      }
      const auto* from = reinterpret_cast<const int32_t*>(&s);
      ints.insert(ints.end(), from, from + kKvSegment);
      first += t.queries;
    }
    return ints;
  }
  static int64_t tokens_of(const std::vector<Text>& texts) {
    int64_t tokens = 0;
    for (const Text& t : texts) tokens += t.queries;
    return tokens;
  }
  Tensor upload_segments(const std::vector<int32_t>& ints) {
    return upload({static_cast<int64_t>(ints.size()) / kKvSegment, kKvSegment}, ints);
  }

  Tensor attend(const Tensor& qkv, const Tensor& cache, const Tensor& segments, const CacheShape& s) {
    const Tensor out = empty(qkv.dtype, {qkv.dim(0), s.out_width()});
    ops_->fill(out, 0);
    ops_->cache_attention(out, qkv, cache, segments, s);
    return out;
  }

  static constexpr size_t kBytes = size_t{512} << 20;
  std::unique_ptr<Backend> backend_;
  std::byte* block_ = nullptr;
  Region data_, temp_;
  std::unique_ptr<Ops> ops_;
};

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (const float d = std::abs(a[i] - b[i]); !(d <= most)) most = d;  // NaN counts
  return most;
}

CacheShape shape(int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t max_queries, int64_t max_keys) {
  return {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .max_queries = max_queries, .max_keys = max_keys, .pairs = 1};
}

// Each with few queries, where the keys are split and merged, and with many.
TEST_F(InferenceOnGpu, ARecordedCallServesOtherLengths) {
  for (const DType dtype : {b16, f32})
    for (const int32_t most : {1, 70}) {
      const Scope scope(data_);
      const CacheShape s = shape(4, 2, 64, most, 1000);
      const int64_t rows = 2 * most, slots = 3000;
      const Tensor original = normal(dtype, {rows, s.qkv_width()}, 1), qkv = empty(dtype, original.shape);
      const Tensor cache = normal(dtype, {slots, s.cache_width()}, 2), table = empty(f32, {1000, s.head_dim});
      const Tensor out = empty(dtype, {rows, s.out_width()}), positions = empty(DType::i32, {rows}), to = empty(DType::i32, {rows});
      const Tensor segments = empty(DType::i32, {2, kKvSegment});
      ops_->rope_table(table, {});
      const auto work = [&] {
        ops_->cast(qkv, original);
        ops_->fill(out, 0);
        ops_->cache_append(cache, qkv, table, positions, to, s);
        ops_->cache_attention(out, qkv, cache, segments, s);
      };
      const auto set = [&](const std::vector<Text>& texts, int32_t position) {
        std::vector<int32_t> at(static_cast<size_t>(rows)), into(static_cast<size_t>(rows));
        for (size_t i = 0; i < at.size(); ++i) at[i] = position + static_cast<int32_t>(i) % most, into[i] = static_cast<int32_t>(i + 2500);
        device().upload(positions, at.data());
        device().upload(to, into.data());
        device().upload(segments, segments_of(texts, 1010).data());
      };
      set({{most, 1000}, {most, 1000}}, 0);
      work();
      const auto recording = device().record(work);
      ASSERT_NE(recording, nullptr);
      for (const int32_t keys : {70, 200, 257, 700, 1000}) {
        set({{most, keys}, {1, keys - 69}}, keys - 70);
        recording->run();
        const std::vector<float> recorded = values(out);
        work();
        EXPECT_EQ(recorded, values(out)) << name_of(dtype) << ", " << most << " queries, " << keys << " keys";
        EXPECT_GT(largest_difference(recorded, std::vector<float>(recorded.size())), 0.0f);
      }
    }
}

// A query of 8 has its keys in chunks, the same one of 9 has not.
TEST_F(InferenceOnGpu, SplittingTheKeysGivesWhatOneChunkGives) {
  for (const int64_t head : {64, 128, 80, 6, 256})
    for (const int32_t keys : {1000, 300, 257, 9}) {
      const Scope scope(data_);
      const Tensor qkv = normal(f32, {9, 8 * head}, 3), cache = normal(f32, {1010, 4 * head}, 4);
      std::vector<int32_t> segment = segments_of({{9, keys}}, 1010);
      std::vector<float> one = values(attend(qkv, cache, upload_segments(segment), shape(4, 2, head, 9, 1000)));
      one.resize(one.size() / 9 * 8);
      segment[1] = 8, segment[2] = keys - 1;
      std::vector<float> split = values(attend(qkv, cache, upload_segments(segment), shape(4, 2, head, 8, 1000)));
      split.resize(one.size());
      EXPECT_LE(largest_difference(split, one), 1e-5f) << keys << " keys, head size " << head;
    }
}

// Bounds that are not reached do not matter, nor who does the chunks: with a bound of many queries one block does them all.
TEST_F(InferenceOnGpu, HowATextIsSplitFollowsFromItsOwnLength) {
  for (const DType dtype : {f32, b16})
    for (const int64_t head : {64, 128, 34}) {
      const Scope scope(data_);
      const std::vector<Text> texts = {{1, 1000}, {3, 300}, {1, 256}, {8, 257}, {1, 1}, {2, 513}};
      const Tensor segments = upload_segments(segments_of(texts, 1010));
      const Tensor qkv = normal(dtype, {tokens_of(texts), 8 * head}, 5), cache = normal(dtype, {6 * 1010, 4 * head}, 6);
      const std::vector<float> exact = values(attend(qkv, cache, segments, shape(4, 2, head, 8, 1000)));
      EXPECT_EQ(values(attend(qkv, cache, segments, shape(4, 2, head, 8, 30000))), exact) << name_of(dtype) << ", head size " << head;
      EXPECT_EQ(values(attend(qkv, cache, segments, shape(4, 2, head, 100, 1000))), exact) << name_of(dtype) << ", head size " << head;
    }
}

TEST_F(InferenceOnGpu, TensorCoresGiveWhatThePlainKernelGives) {
  const std::vector<Text> texts = {{100, 2500}, {20, 20}, {1, 64}, {64, 65}, {130, 1000}, {33, 128}, {16, 15 + 16}, {1, 1}};
  for (const int64_t head : {64, 128})
    for (const auto& [heads, kv_heads] : {std::pair<int64_t, int64_t>{4, 4}, {6, 2}, {8, 1}}) {
      const Scope scope(data_);
      const CacheShape s = shape(heads, kv_heads, head, 130, 2500);
      const Tensor segments = upload_segments(segments_of(texts, 2510));
      const Tensor qkv = normal(b16, {tokens_of(texts), s.qkv_width()}, 7);
      const Tensor cache = normal(b16, {static_cast<int64_t>(texts.size()) * 2510, s.cache_width()}, 8);
      const std::vector<float> got = values(attend(qkv, cache, segments, s));
      const std::vector<float> plain = values(attend(in_f32(qkv), in_f32(cache), segments, s));
      EXPECT_LE(largest_difference(got, plain), 3e-2f) << heads << " heads of " << head << " on " << kv_heads;
    }
}

// Alone, and with the bounds of its own, each gives the bits it gave among the others. One query head per kv head: a single row then.
TEST_F(InferenceOnGpu, TheOtherSegmentsOfACallDoNotMatter) {
  const std::vector<Text> texts = {{100, 700}, {1, 700}, {20, 20}, {1, 64}, {8, 600}, {2, 257}, {130, 500}};
  for (const DType dtype : {b16, f32}) {
    const Scope scope(data_);
    const CacheShape s = shape(3, 3, 128, 130, 700);
    const std::vector<int32_t> all = segments_of(texts, 710);
    const Tensor qkv = normal(dtype, {tokens_of(texts), s.qkv_width()}, 9), cache = normal(dtype, {7 * 710, s.cache_width()}, 10);
    const std::vector<float> together = values(attend(qkv, cache, upload_segments(all), s));
    std::vector<float> apart(together.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto* from = all.data() + i * kKvSegment;
      const CacheShape own = shape(3, 3, 128, texts[i].queries, texts[i].keys);
      const std::vector<float> alone = values(attend(qkv, cache, upload_segments({from, from + kKvSegment}), own));
      for (size_t e = 0; e < alone.size(); ++e) apart[e] += alone[e];  // rows of no segment stay 0
    }
    EXPECT_EQ(together, apart) << name_of(dtype);
  }
}

}  // namespace
}  // namespace hlat
