#include "burnin/memory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/format.h"
#include "base/machine.h"
#include "base/memory_limits.h"
#include "burnin/memory_patterns.h"
#include "health/fingerprint.h"
#include "ops/device.h"

namespace hlat {

namespace {

constexpr size_t kBlockBytes = kBlockWords * sizeof(uint64_t);

struct MemoryMeasured {
  uint64_t host_bytes = 0, gpu_bytes = 0;    // under test
  uint64_t host_tested = 0, gpu_tested = 0;  // written and read, over all patterns
  std::string words;
};

size_t blocks_of(size_t available, int sharing, double share, size_t most) {
  const auto mine = static_cast<size_t>(share * static_cast<double>(available) / sharing);
  return std::min(mine, most) / kBlockBytes;
}

// Runs the patterns again and again until the time is up, at least once through its first blocks.
std::string test_for(const TestedMemory& memory, double seconds, bool once, uint64_t& tested) {
  const double start = now_s();
  const auto over = [&] { return now_s() - start > seconds; };
  do {
    if (auto wrong = test_patterns(memory, over, tested)) return *wrong;
  } while (!once && !over());
  return {};
}

std::string test_host(size_t blocks, double seconds, bool once, uint64_t& tested) {
  const std::unique_ptr<uint64_t[]> words(new uint64_t[blocks * kBlockWords]);
  const auto at = [&](size_t block) { return words.get() + block * kBlockWords; };
  return test_for({.blocks = blocks,
                   .write = [&](size_t b, std::span<const uint64_t> w) { std::memcpy(at(b), w.data(), w.size_bytes()); },
                   .holds = [&](size_t b, std::span<const uint64_t> w) { return std::memcmp(at(b), w.data(), w.size_bytes()) == 0; },
                   .read = [&](size_t b, std::span<uint64_t> w) { std::memcpy(w.data(), at(b), w.size_bytes()); }},
                  seconds, once, tested);
}

// Blocks are read back as fingerprints that the device takes.
std::string test_gpu(Backend& backend, size_t blocks, double seconds, bool once, uint64_t& tested) {
  Region measuring;
  const size_t scratch = backend.make_ops(measuring)->reduce_scratch(static_cast<int64_t>(kBlockBytes / sizeof(float)));
  MemoryPlan plan;
  plan.bytes[static_cast<size_t>(Purpose::temp)] = blocks * kBlockBytes + scratch + 4 * kAlign;
  PlannedMemory memory(backend.device(), plan);
  Region& region = memory.memory()[Purpose::temp];
  const auto rows = static_cast<int64_t>(kBlockBytes / sizeof(float));
  const Tensor all = region.alloc(DType::f32, {static_cast<int64_t>(blocks), rows}, "tested");
  const Tensor sum = region.alloc(DType::i32, {2}, "fingerprint");
  const auto ops = backend.make_ops(region);
  const auto block_of = [&](size_t b) { return all.rows(static_cast<int64_t>(b), static_cast<int64_t>(b) + 1); };
  return test_for({.blocks = blocks,
                   .write = [&](size_t b, std::span<const uint64_t> w) { backend.device().upload(block_of(b), w.data()); },
                   .holds =
                       [&](size_t b, std::span<const uint64_t> w) {
                         uint64_t got = 0;
                         ops->checksum(sum, block_of(b));
                         backend.device().download(&got, sum);
                         return got == fingerprint(w.data(), w.size_bytes());
                       },
                   .read = [&](size_t b, std::span<uint64_t> w) { backend.device().download(w.data(), block_of(b)); }},
                  seconds, once, tested);
}

MemoryMeasured measure_memory(const CheckRun& run, double seconds) try {
  MemoryMeasured m;
  const bool quick = run.options.short_form, gpu = run.has_gpu();
  const size_t most = quick ? size_t{32} << 20 : size_t{4} << 30;
  const size_t blocks = std::max<size_t>(1, blocks_of(host_memory_available(), run.session.local_ranks(), 0.5, most));
  m.host_bytes = blocks * kBlockBytes;
  m.words = test_host(blocks, gpu ? seconds / 4 : seconds, quick, m.host_tested);
  if (!m.words.empty()) m.words = "wrong: host memory: " + m.words;
  if (!gpu || !m.words.empty()) return m;
  // Ranks that share a GPU may be all of the host.
  const int sharing = run.competes ? run.session.local_ranks() : 1;
  const size_t on_gpu =
      std::max<size_t>(1, blocks_of(run.backend.device().memory_available(), sharing, 0.8, quick ? size_t{1} << 30 : SIZE_MAX));
  m.gpu_bytes = on_gpu * kBlockBytes;
  m.words = test_gpu(run.backend, on_gpu, seconds * 3 / 4, quick, m.gpu_tested);
  if (!m.words.empty()) m.words = "wrong: GPU memory: " + m.words;
  return m;
} catch (const std::exception& e) {
  return {.words = fmt::format("failed: {}", e.what())};
}

}  // namespace

PartReport check_memory(const CheckRun& run, double seconds) {
  run.say(fmt::format("memory: up to {:.0f} s", seconds));
  run.world().barrier();
  const MemoryMeasured own = measure_memory(run, seconds);
  const auto all = gather_json(run.world(), {{"host_bytes", own.host_bytes},
                                             {"gpu_bytes", own.gpu_bytes},
                                             {"host_tested", own.host_tested},
                                             {"gpu_tested", own.gpu_tested},
                                             {"words", own.words}});
  PartReport report{.name = "memory"};
  report.json["ranks"] = nlohmann::ordered_json::array();
  uint64_t host = 0, gpu = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    const std::string words = all[r]["words"];
    host += all[r]["host_tested"].get<uint64_t>();
    gpu += all[r]["gpu_tested"].get<uint64_t>();
    if (!words.empty()) report.findings.push_back(run.finding("memory", r, words));
    nlohmann::ordered_json j{{"rank", r}, {"host", run.hosts[r]}};
    j.update(all[r]);
    report.json["ranks"].push_back(std::move(j));
  }
  report.title = fmt::format("{} patterns; {} of host memory written and read back", kPatterns, format_bytes(host));
  if (gpu > 0) report.title += fmt::format(", {} of GPU memory", format_bytes(gpu));
  return report;
}

}  // namespace hlat
