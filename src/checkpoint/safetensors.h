// The safetensors format: 8 bytes with the length of a JSON header, the header, then the tensors' bytes without gaps. Header and sizes are
// checked before anything is believed. Knows nothing of checkpoints: files of others are read with it too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hlat {

struct SafeTensor {
  std::string name;
  std::string dtype;  // as the format names it: "F32", "BF16", "F16", "I64", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the end of the header
  bool operator==(const SafeTensor&) const = default;
};

struct SafetensorsHeader {
  std::vector<SafeTensor> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  uint64_t bytes = 0;  // length field, JSON and padding: where the tensors begin in the file

  const SafeTensor* find(std::string_view name) const;

  // Length field and header, padded with spaces so that tensors begin at a multiple of 4096. `bytes` is not looked at.
  std::string save() const;
  // `text` begins with the length field and holds at least the whole header; file_bytes is the size of the file. Error: why it is no
  // safetensors file.
  static SafetensorsHeader parse(std::string_view text, uint64_t file_bytes);
  static SafetensorsHeader read(const std::filesystem::path& file);  // the same, with the file named
};

uint64_t safetensors_item_bytes(std::string_view dtype);  // 0: a type that is not known

}  // namespace hlat
