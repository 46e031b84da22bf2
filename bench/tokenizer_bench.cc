// Speed of encoding on one thread, in bytes of text per second: the small tokenizers of the tests on their own texts, and, where
// this machine has them, published tokenizers on WikiText-2. `hlat_bench --benchmark_filter=encode`
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "data/tokenizer/tokenizer.h"

namespace hlat {
namespace {

const std::string kFixtures = HLAT_SOURCE_DIR "/tests/fixtures/tokenizer/";
const std::string kShared = HLAT_SOURCE_DIR "/../shared/data/";

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string fixture_text() {
  std::ifstream file(kFixtures + "golden.jsonl");
  std::string line;
  std::getline(file, line);
  std::string text;
  const nlohmann::json json = nlohmann::json::parse(line);
  for (const auto& t : json["texts"]) text += t.get<std::string>() + "\n";
  return text;
}

void encode(benchmark::State& state, const std::string& file, const std::string& text) {
  const auto tokenizer = load_tokenizer(file);
  const auto encoder = tokenizer->encoder();
  std::vector<int32_t> ids;
  for ([[maybe_unused]] auto _ : state) {
    ids.clear();
    encoder->encode(text, ids);
    benchmark::DoNotOptimize(ids.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.counters["bytes_per_token"] = static_cast<double>(text.size()) / static_cast<double>(ids.size());
}

const bool kRegistered = [] {
  for (const char* name : {"gpt2.json", "llama3.json", "llama2.json", "bpe.model", "unigram.model"})
    benchmark::RegisterBenchmark((std::string("encode/fixture/") + name).c_str(), encode, kFixtures + name, fixture_text());
  const std::string corpus = kShared + "corpora/wikitext-2/valid.txt";
  for (const char* name : {"gpt2/tokenizer.json", "gpt_neox/20B_tokenizer.json", "llama2/tokenizer.json", "llama2/tokenizer.model",
                           "llama3/tokenizer.model"}) {
    const std::string file = kShared + "tokenizers/" + name;
    if (std::filesystem::exists(file) && std::filesystem::exists(corpus))
      benchmark::RegisterBenchmark((std::string("encode/wikitext/") + name).c_str(), encode, file, slurp(corpus));
  }
  return true;
}();

}  // namespace
}  // namespace hlat
