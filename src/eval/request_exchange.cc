#include "eval/request_exchange.h"

#include <cstring>

#include "base/error.h"
#include "comm/host_exchange.h"

namespace hlat {

namespace {

constexpr uint64_t kNoMore = UINT64_MAX;

// Counts are 64 bits, before what they count. All ranks run the same program on the same kind of machine.
class Packer {
 public:
  void add(const void* data, size_t bytes) { bytes_.append(static_cast<const char*>(data), bytes); }
  void add(uint64_t value) { add(&value, sizeof value); }
  void add(const std::vector<int32_t>& ids) {
    add(ids.size());
    add(ids.data(), ids.size() * sizeof(int32_t));
  }
  void add(const std::string& text) {
    add(text.size());
    add(text.data(), text.size());
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  void get(void* data, size_t bytes) {
    HLAT_CHECK(bytes <= bytes_.size(), "{} bytes are wanted and {} left", bytes, bytes_.size());
    if (bytes > 0) std::memcpy(data, bytes_.data(), bytes);
    bytes_.remove_prefix(bytes);
  }
  uint64_t number() {
    uint64_t value = 0;
    get(&value, sizeof value);
    return value;
  }
  std::vector<int32_t> ids() {
    std::vector<int32_t> ids(number());
    get(ids.data(), ids.size() * sizeof(int32_t));
    return ids;
  }
  std::string text() {
    std::string text(number(), '\0');
    get(text.data(), text.size());
    return text;
  }

 private:
  std::string_view bytes_;
};

}  // namespace

std::string pack(const Asked& asked) {
  static_assert(std::is_trivially_copyable_v<Sampling>);
  Packer out;
  out.add(asked.scores.size());
  for (const ScoreRequest& r : asked.scores) {
    out.add(r.context);
    out.add(r.continuation);
  }
  HLAT_CHECK(asked.stops.size() == asked.prompts.size(), "{} prompts with {} lists of stop strings", asked.prompts.size(),
             asked.stops.size());
  out.add(asked.prompts.size());
  for (size_t i = 0; i < asked.prompts.size(); ++i) {
    const GenerateRequest& r = asked.prompts[i];
    out.add(r.prompt);
    out.add(static_cast<uint64_t>(r.max_new));
    out.add(&r.sampling, sizeof r.sampling);
    out.add(static_cast<uint64_t>(static_cast<int64_t>(r.end)));
    out.add(r.logprobs ? 1 : 0);
    out.add(asked.stops[i].size());
    for (const std::string& stop : asked.stops[i]) out.add(stop);
  }
  return out.take();
}

Asked unpack(std::string_view bytes) {
  Unpacker in(bytes);
  Asked asked;
  asked.scores.resize(in.number());
  for (ScoreRequest& r : asked.scores) {
    r.context = in.ids();
    r.continuation = in.ids();
  }
  asked.prompts.resize(in.number());
  for (GenerateRequest& r : asked.prompts) {
    r.prompt = in.ids();
    r.max_new = static_cast<int64_t>(in.number());
    in.get(&r.sampling, sizeof r.sampling);
    r.end = static_cast<int32_t>(in.number());
    r.logprobs = in.number() != 0;
    std::vector<std::string>& stops = asked.stops.emplace_back(in.number());
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
