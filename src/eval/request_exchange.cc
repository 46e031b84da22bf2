#include "eval/request_exchange.h"

#include "base/error.h"
#include "base/packed.h"
#include "comm/host_exchange.h"

namespace hlat {

namespace {

constexpr uint64_t kNoMore = UINT64_MAX;

}  // namespace

std::string pack(const Asked& asked) {
  Packer out;
  out.add(uint64_t{asked.scores.size()});
  for (const ScoreRequest& r : asked.scores) {
    out.add(r.context);
    out.add(r.continuation);
  }
  HLAT_CHECK(asked.stops.size() == asked.prompts.size(), "{} prompts with {} lists of stop strings", asked.prompts.size(),
             asked.stops.size());
  out.add(uint64_t{asked.prompts.size()});
  for (size_t i = 0; i < asked.prompts.size(); ++i) {
    const GenerateRequest& r = asked.prompts[i];
    out.add(r.prompt);
    out.add(r.max_new);
    out.add(r.sampling);
    out.add(r.end);
    out.add(r.logprobs);
    out.add(uint64_t{asked.stops[i].size()});
    for (const std::string& stop : asked.stops[i]) out.add(stop);
  }
  return out.take();
}

Asked unpack(std::string_view bytes) {
  constexpr size_t kLeast = sizeof(uint64_t);  // of a text or a list: its count
  Unpacker in(bytes, "the message of requests");
  Asked asked;
  asked.scores.resize(in.count(2 * kLeast));
  for (ScoreRequest& r : asked.scores) {
    r.context = in.list<int32_t>();
    r.continuation = in.list<int32_t>();
  }
  asked.prompts.resize(in.count(2 * kLeast));
  for (GenerateRequest& r : asked.prompts) {
    r.prompt = in.list<int32_t>();
    r.max_new = in.get<int64_t>();
    r.sampling = in.get<Sampling>();
    r.end = in.get<int32_t>();
    r.logprobs = in.get<bool>();
    std::vector<std::string>& stops = asked.stops.emplace_back(in.count(kLeast));
    for (std::string& stop : stops) stop = in.text();
  }
  return asked;
}

void send_asked(Comm& world, const std::optional<Asked>& asked) {
  if (world.size() == 1) return;
  std::string bytes = asked ? pack(*asked) : "";
  broadcast_value(world, asked ? static_cast<uint64_t>(bytes.size()) : kNoMore, 0);
  if (asked) world.host().broadcast_bytes(bytes.data(), bytes.size(), 0);
}

std::optional<Asked> receive_asked(Comm& world) {
  const uint64_t size = broadcast_value(world, uint64_t{0}, 0);
  if (size == kNoMore) return {};
  std::string bytes(size, '\0');
  world.host().broadcast_bytes(bytes.data(), bytes.size(), 0);
  return unpack(bytes);
}

}  // namespace hlat
