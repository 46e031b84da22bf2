#include "eval/executor_model.h"

#include <algorithm>

#include "base/packed.h"
#include "comm/host_exchange.h"
#include "eval/generator.h"
#include "eval/prefix_tree.h"
#include "eval/scorer.h"

namespace hlat {

namespace {

// Numbers of requests by replica: neighbours in an order that keeps shared beginnings together, of about equal cost.
std::vector<std::vector<size_t>> shares(std::span<const PrefixTree::Text> texts, std::span<const int64_t> costs, size_t replicas) {
  std::vector<std::vector<size_t>> parts(replicas);
  int64_t total = 0, before = 0;
  for (const int64_t cost : costs) total += cost;
  for (const size_t i : lexicographic_order(texts)) {
    const auto part = static_cast<size_t>(before * static_cast<int64_t>(replicas) / std::max<int64_t>(total, 1));
    parts[std::min(part, replicas - 1)].push_back(i);
    before += costs[i];
  }
  return parts;
}

// Every replica's bytes, in their order.
std::vector<std::string> gather_bytes(Comm& comm, const std::string& own) {
  const std::vector<uint64_t> sizes = all_gather_values(comm, uint64_t{own.size()});
  const uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
  std::string all(largest * sizes.size(), '\0');
  own.copy(all.data() + largest * static_cast<uint64_t>(comm.rank()), own.size());
  if (largest > 0) comm.host().all_gather_bytes(all.data(), largest);
  std::vector<std::string> parts;
  for (size_t r = 0; r < sizes.size(); ++r) parts.push_back(all.substr(r * largest, sizes[r]));
  return parts;
}

// `answer` answers this replica's requests, in the order of their numbers; put and take carry one answer to the other replicas.
template <class Result, class Answer, class Put, class Take>
std::vector<Result> shared_out(Comm& dp, const std::vector<std::vector<size_t>>& parts, const Answer& answer, const Put& put,
                               const Take& take) {
  Packer own;
  for (const Result& result : answer(parts[static_cast<size_t>(dp.rank())])) put(own, result);
  size_t count = 0;
  for (const std::vector<size_t>& part : parts) count += part.size();
  std::vector<Result> all(count);
  const std::vector<std::string> bytes = gather_bytes(dp, own.take());
  for (size_t r = 0; r < parts.size(); ++r) {
    Unpacker packed(bytes[r], "the message of answers");
    for (const size_t i : parts[r]) all[i] = take(packed);
  }
  return all;
}

}  // namespace

std::vector<Score> ExecutorModel::score(std::span<const ScoreRequest> requests, const Told& told) {
  Comm& dp = passes_.executor().mesh().along(Axis::dp);
  if (dp.size() == 1) return score_all(passes_, requests, told);
  std::vector<PrefixTree::Text> texts;
  std::vector<int64_t> costs;
  for (const ScoreRequest& r : requests) {
    texts.emplace_back(r.context);
    costs.push_back(static_cast<int64_t>(r.context.size() + r.continuation.size()));
  }
  const auto answer = [&](const std::vector<size_t>& mine) {
    std::vector<ScoreRequest> own;
    for (const size_t i : mine) own.push_back(requests[i]);
    return score_all(passes_, own, told ? [&](size_t n) { told(std::min(n * static_cast<size_t>(dp.size()), requests.size())); } : Told{});
  };
  const auto put = [](Packer& to, const Score& s) {
    to.add(s.logprob);
    to.add(s.greedy);
    to.add(s.logprobs);
  };
  const auto take = [](Unpacker& from) {
    Score s;
    s.logprob = from.get<double>();
    s.greedy = from.get<bool>();
    s.logprobs = from.list<float>();
    return s;
  };
  return shared_out<Score>(dp, shares(texts, costs, static_cast<size_t>(dp.size())), answer, put, take);
}

std::vector<Generation> ExecutorModel::generate(std::span<const GenerateRequest> requests, const KeepOn& keep, const Told& told) {
  Comm& dp = passes_.executor().mesh().along(Axis::dp);
  if (dp.size() == 1) return generate_all(passes_, requests, keep, told);
  std::vector<PrefixTree::Text> texts;
  std::vector<int64_t> costs;
  for (const GenerateRequest& r : requests) {
    texts.emplace_back(r.prompt);
    costs.push_back(r.max_new);
  }
  const auto answer = [&](const std::vector<size_t>& mine) {
    std::vector<GenerateRequest> own;
    for (const size_t i : mine) own.push_back(requests[i]);
    return generate_all(passes_, own, keep ? [&](size_t i, const NewToken& token) { return keep(mine[i], token); } : KeepOn{},
                        told ? [&](size_t n) { told(std::min(n * static_cast<size_t>(dp.size()), requests.size())); } : Told{});
  };
  const auto put = [](Packer& to, const Generation& g) {
    to.add(g.reason);
    to.add(g.tokens);
  };
  const auto take = [](Unpacker& from) {
    Generation g;
    g.reason = from.get<EndReason>();
    g.tokens = from.list<NewToken>();
    return g;
  };
  return shared_out<Generation>(dp, shares(texts, costs, static_cast<size_t>(dp.size())), answer, put, take);
}

}  // namespace hlat
