#include "record/event_file_cut.h"

#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "record/tensorboard.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kHead = 12, kFoot = 4;  // length with its crc; crc of the data

template <class T>
T fixed(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// The records of an event file, one after the other, up to its end or to the first bytes that are none.
class EventRecords {
 public:
  explicit EventRecords(const fs::path& file) : size_(fs::file_size(file)), in_(file, std::ios::binary) {}

  bool next() {
    std::string head, foot;
    if (!read(kHead, head) || fixed<uint32_t>(std::string_view(head).substr(8)) != masked_crc32c(head.substr(0, 8))) return false;
    const uint64_t length = fixed<uint64_t>(head);
    if (length > size_ - end_ || !read(length, data_) || !read(kFoot, foot)) return false;
    if (fixed<uint32_t>(foot) != masked_crc32c(data_)) return false;
    begin_ = end_;
    end_ += kHead + length + kFoot;
    return true;
  }
  std::string_view data() const { return data_; }
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }  // of the records read
  uint64_t file_size() const { return size_; }

 private:
  bool read(uint64_t bytes, std::string& to) {
    to.resize(bytes);
    return static_cast<bool>(in_.read(to.data(), static_cast<std::streamsize>(bytes)));
  }

  uint64_t size_, begin_ = 0, end_ = 0;
  std::ifstream in_;
  std::string data_;
};

std::optional<uint64_t> take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return {};
}

// Of a protobuf Event; 0 where it has none, as the version record.
int64_t step_of(std::string_view event) {
  while (const auto tag = take_varint(event)) {
    std::optional<uint64_t> skip;
    switch (*tag & 7) {
      case 0: {
        const auto value = take_varint(event);
        if (*tag >> 3 == 2) return static_cast<int64_t>(value.value_or(0));
        skip = 0;
        break;
      }
      case 1: skip = 8; break;
      case 2: skip = take_varint(event); break;
      case 5: skip = 4; break;
      default: break;
    }
    if (!skip || *skip > event.size()) break;
    event.remove_prefix(*skip);
  }
  return 0;
}

}  // namespace

void cut_event_file(const fs::path& file, int64_t step, PreviousRun& previous) {
  EventRecords records(file);
  uint64_t version_end = 0;
  std::optional<uint64_t> cut;
  bool any_kept = false;
  while (records.next()) {
    if (version_end == 0) version_end = records.end();
    const int64_t found = step_of(records.data());
    if (found > step && !cut) cut = records.begin();
    any_kept = any_kept || (found > 0 && !cut);
  }
  const uint64_t whole = records.end();
  if (cut && !any_kept) {
    if (whole < records.file_size()) cut_file(file, whole);
    return previous.take(file);
  }
  if (cut) {
    const fs::path copy = previous.folder() / file.filename();
    OutputFile out(copy, OutputFile::Mode::create_new);
    append_range(file, 0, version_end, out);
    append_range(file, *cut, whole, out);
    previous.sync(copy);
  }
  if (const uint64_t keep = cut.value_or(whole); keep < records.file_size()) cut_file(file, keep);
}

}  // namespace hlat
