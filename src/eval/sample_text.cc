#include "eval/sample_text.h"

#include <algorithm>

#include "comm/host_exchange.h"
#include "data/tokenizer/unicode.h"
#include "eval/sampler.h"

namespace hlat {

namespace {

struct Ids {
  int64_t known = 0;  // the tokenizer has these: 0 to known - 1
  int32_t eos = 0;
};

// Only ranks that read batches have the tokenizer: the first of tp, on the first stage.
Ids ids_of(const Mesh& mesh, const Dataset* data, int64_t vocab) {
  Ids ids;
  if (data != nullptr) ids = {.known = std::min(vocab, data->tokenizer().vocab_size()), .eos = data->special().eos};
  return broadcast_value(mesh.along(Axis::pp), broadcast_value(mesh.along(Axis::tp), ids, 0), 0);
}

}  // namespace

std::vector<std::string> sample_texts(Executor& executor, const Dataset* data, int64_t lines) {
  if (lines == 0) return {};
  constexpr int64_t kLongest = 96;
  const Config& config = executor.config();
  const int64_t rows = config.train.micro_batch, seq = std::min<int64_t>(config.train.seq_len, kLongest);
  const int64_t vocab = config.model.vocab;
  const auto [known, eos] = ids_of(executor.mesh(), data, vocab);
  RandomStream random({.seed = config.run.seed, .stream = hash_name("sample"), .purpose = Noise::sample});
  std::vector<int32_t> ids(static_cast<size_t>(rows * seq), eos);  // every text starts after a document end
  std::vector<bool> done(static_cast<size_t>(rows), false);
  int64_t length = 1;
  for (; length < seq && std::find(done.begin(), done.end(), false) != done.end(); ++length) {
    const auto logits = executor.next_logits(ids, seq, length);
    for (int64_t r = 0; r < rows; ++r) {
      const std::vector<double> weights = softmax_weights({logits.data() + r * vocab, static_cast<size_t>(known)});
      const auto id = static_cast<int32_t>(draw_index(weights, random.next_unit()));
      std::vector<bool>::reference finished = done[static_cast<size_t>(r)];
      finished = finished || id == eos;
      if (!finished) ids[static_cast<size_t>(r * seq + length)] = id;
    }
  }
  std::vector<std::string> texts;
  if (data == nullptr) return texts;
  std::string buffer;
  for (int64_t r = 0; r < std::min(rows, lines); ++r) {
    const auto begin = ids.begin() + r * seq + 1;
    const auto end = std::find(begin, begin + length - 1, eos);
    const std::string text = data->tokenizer().decode({begin, end});
    texts.emplace_back(tokenizer::unicode::valid(text, buffer));
  }
  return texts;
}

}  // namespace hlat
