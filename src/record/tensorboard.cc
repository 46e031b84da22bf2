#include "record/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>

#include "base/machine.h"

namespace hlat {
namespace {

static_assert(std::endian::native == std::endian::little, "fixed-size fields are copied as they lie in memory");

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1u) ? 0x82f63b78u : 0u);  // Castagnoli, reflected
    table[i] = c;
  }
  return table;
}

template <class T>
void put_fixed(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

enum WireType : uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_tag(std::string& out, uint64_t field, WireType type) { put_varint(out, field << 3 | type); }

void put_bytes(std::string& out, uint64_t field, std::string_view value) {
  put_tag(out, field, bytes);
  put_varint(out, value.size());
  out += value;
}

std::string event_head(double wall_time) {
  std::string out;
  put_tag(out, 1, fixed64);
  put_fixed(out, wall_time);
  return out;
}

// Two runs may start within one second.
std::filesystem::path free_name(const std::filesystem::path& folder, double wall_time) {
  const std::string base = fmt::format("events.out.tfevents.{:010}.{}.{}", static_cast<int64_t>(wall_time), host_name(), getpid());
  for (int n = 0;; ++n)
    if (const auto path = folder / fmt::format("{}.{}", base, n); !std::filesystem::exists(path)) return path;
}

}  // namespace

uint32_t crc32c(std::string_view data) {
  static constexpr auto kTable = make_crc_table();
  uint32_t c = ~0u;
  for (const char byte : data) c = kTable[(c ^ static_cast<unsigned char>(byte)) & 0xffu] ^ (c >> 8);
  return ~c;
}

// A crc of data that itself holds crcs is weak; TFRecord therefore rotates and shifts what it stores.
uint32_t masked_crc32c(std::string_view data) { return std::rotr(crc32c(data), 15) + 0xa282ead8u; }

EventWriter::EventWriter(const std::filesystem::path& folder, double wall_time)
    : file_(free_name(folder, wall_time), OutputFile::Mode::create_new) {
  std::string event = event_head(wall_time);
  put_bytes(event, 3, "brain.Event:2");
  record(event);
}

namespace {

void put_value(std::string& summary, std::string_view tag, double value) {
  std::string item;
  put_bytes(item, 1, tag);
  put_tag(item, 2, fixed32);
  put_fixed(item, static_cast<float>(value));
  put_bytes(summary, 1, item);
}

// monitor/leak, monitor/grad_norm/03, monitor/source_loss/web.
void put_monitors(std::string& summary, const Monitors& m) {
  monitor_values(
      m, [&](const char* name, double value) { put_value(summary, fmt::format("monitor/{}", name), value); },
      [&](const char* name, const std::vector<double>& values) {
        for (size_t i = 0; i < values.size(); ++i) put_value(summary, fmt::format("monitor/{}/{:02}", name, i), values[i]);
      });
  for (const auto& [source, loss] : m.source_loss) put_value(summary, fmt::format("monitor/source_loss/{}", source), loss);
}

// As a tensor of no dimensions, of the type string, for TensorBoard's plugin of texts.
void put_text(std::string& summary, std::string_view tag, std::string_view text) {
  constexpr uint64_t kString = 7;
  std::string tensor, plugin, metadata, item;
  put_tag(tensor, 1, varint);
  put_varint(tensor, kString);
  put_bytes(tensor, 2, "");
  put_bytes(tensor, 8, text);
  put_bytes(plugin, 1, "text");
  put_bytes(metadata, 1, plugin);
  put_bytes(item, 1, tag);
  put_bytes(item, 8, tensor);
  put_bytes(item, 9, metadata);
  put_bytes(summary, 1, item);
}

std::string event_of(int64_t step, const std::string& summary, double wall_time) {
  std::string event = event_head(wall_time);
  put_tag(event, 2, varint);
  put_varint(event, static_cast<uint64_t>(step));
  put_bytes(event, 5, summary);
  return event;
}

template <class Metrics>
std::string summary_of(const Metrics& m, std::string_view prefix) {
  std::string summary;
  scalars(m, [&](const char* name, double value) { put_value(summary, fmt::format("{}{}", prefix, name), value); });
  return summary;
}

}  // namespace

void EventWriter::write(const StepMetrics& m, double wall_time) {
  std::string summary = summary_of(m, "train/");
  if (m.computed && m.monitors) put_monitors(summary, *m.monitors);
  record(event_of(m.step, summary, wall_time));
}

void EventWriter::write(const TaskMetrics& m, double wall_time) { record(event_of(m.step, summary_of(m, ""), wall_time)); }

void EventWriter::write(const ToldAlarm& alarm, double wall_time) {
  std::string summary;
  put_value(summary, "alarm/" + alarm.rule, alarm.value);
  put_text(summary, fmt::format("alarm/{}/evidence", alarm.rule), alarm.evidence);
  record(event_of(alarm.step, summary, wall_time));
}

void EventWriter::record(const std::string& event) {
  std::string out;
  put_fixed(out, static_cast<uint64_t>(event.size()));
  put_fixed(out, masked_crc32c(out));
  out += event;
  put_fixed(out, masked_crc32c(event));
  file_.write(out);
}

}  // namespace hlat
