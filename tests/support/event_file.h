// A small reader of TensorBoard's event files that shares no code with what writes and cuts them. Checks every crc.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace hlat {

inline uint32_t slow_crc32c(const std::string& data) {
  uint32_t c = 0xffffffffu;
  for (const char byte : data)
    for (int bit = 0; bit < 8; ++bit) {
      const uint32_t in = (static_cast<unsigned char>(byte) >> bit) & 1u;
      c = (c >> 1) ^ (((c ^ in) & 1u) * 0x82f63b78u);
    }
  return c ^ 0xffffffffu;
}

template <class T>
T fixed(const std::string& data, size_t at) {
  T value;
  if (at + sizeof(T) > data.size()) throw std::out_of_range("record cut short");
  std::memcpy(&value, data.data() + at, sizeof(T));
  return value;
}

inline uint32_t unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return rotated >> 17 | rotated << 15;
}

inline std::vector<std::string> read_records(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string data{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> out;
  for (size_t at = 0; at < data.size();) {
    const auto length = fixed<uint64_t>(data, at);
    EXPECT_EQ(unmask(fixed<uint32_t>(data, at + 8)), slow_crc32c(data.substr(at, 8)));
    out.push_back(data.substr(at + 12, length));
    EXPECT_EQ(unmask(fixed<uint32_t>(data, at + 12 + length)), slow_crc32c(out.back()));
    at += length + 16;
  }
  return out;
}

// Fields of one protobuf message: numbers as raw 64 bits, messages and strings as bytes.
struct EventField {
  uint64_t number = 0;
  std::string bytes;
};

inline std::multimap<uint64_t, EventField> parse(const std::string& message) {
  std::multimap<uint64_t, EventField> out;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t tag = varint();
    EventField f;
    if ((tag & 7) == 0)
      f.number = varint();
    else if ((tag & 7) == 1)
      f.number = fixed<uint64_t>(message, at), at += 8;
    else if ((tag & 7) == 5)
      f.number = fixed<uint32_t>(message, at), at += 4;
    else if ((tag & 7) == 2) {
      const uint64_t length = varint();
      f.bytes = message.substr(at, length);
      at += length;
    } else
      ADD_FAILURE() << "wire type " << (tag & 7);
    out.emplace(tag >> 3, f);
  }
  return out;
}

inline const EventField& only_field(const std::multimap<uint64_t, EventField>& fields, uint64_t number) {
  if (fields.count(number) != 1) throw std::out_of_range("field " + std::to_string(number) + " is not there once");
  return fields.find(number)->second;
}

}  // namespace hlat
