#include "checkpoint/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"

namespace hlat {

namespace {

using SortedJson = nlohmann::json;  // finds a name in logarithmic time, which ordered_json does not

constexpr uint64_t kLength = 8;                          // bytes of the length field
constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // what readers of the format accept
constexpr uint64_t kDataAlignment = 4096;                // of the first tensor, a page
constexpr int64_t kMaxTensorElements = int64_t{1} << 56;
static_assert(std::endian::native == std::endian::little, "the format is little endian");

struct Item {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array<Item, 17> kItems = {{{"F64", 8},
                                          {"F32", 4},
                                          {"F16", 2},
                                          {"BF16", 2},
                                          {"I64", 8},
                                          {"I32", 4},
                                          {"I16", 2},
                                          {"I8", 1},
                                          {"U64", 8},
                                          {"U32", 4},
                                          {"U16", 2},
                                          {"U8", 1},
                                          {"BOOL", 1},
                                          {"F8_E4M3", 1},
                                          {"F8_E5M2", 1},
                                          {"F8_E8M0", 1},
                                          {"C64", 8}}};

uint64_t whole_number(const SortedJson& value, const std::string& what) {
  if (!value.is_number_unsigned()) fail("{} is no whole number", what);
  return value.get<uint64_t>();
}

SafeTensor tensor_of(const std::string& name, const SortedJson& entry) {
  const auto member = [&](const char* key) -> const SortedJson& {
    if (!entry.is_object() || !entry.contains(key)) fail("tensor {} has no {}", name, key);
    return entry.at(key);
  };
  SafeTensor t{.name = name, .dtype = {}, .shape = {}};
  if (!member("dtype").is_string()) fail("the dtype of tensor {} is no text", name);
  t.dtype = member("dtype").get<std::string>();
  const uint64_t item = safetensors_item_bytes(t.dtype);
  if (item == 0) fail("tensor {} has type {}, which is not known", name, t.dtype);
  if (!member("shape").is_array() || !member("data_offsets").is_array() || member("data_offsets").size() != 2)
    fail("tensor {} has no shape and two offsets", name);
  int64_t elements = 1;
  for (const SortedJson& d : member("shape")) {
    const uint64_t dim = whole_number(d, "a dimension of tensor " + name);
    if (dim > static_cast<uint64_t>(kMaxTensorElements) || (dim > 0 && elements > kMaxTensorElements / static_cast<int64_t>(dim)))
      fail("tensor {} is too large", name);
    elements *= static_cast<int64_t>(dim);
    t.shape.push_back(static_cast<int64_t>(dim));
  }
  t.begin = whole_number(member("data_offsets")[0], "an offset of tensor " + name);
  t.end = whole_number(member("data_offsets")[1], "an offset of tensor " + name);
  if (t.end < t.begin || t.end - t.begin != static_cast<uint64_t>(elements) * item)
    fail("tensor {} has offsets {} to {} for {} elements of {}", name, t.begin, t.end, elements, t.dtype);
  return t;
}

// Tensors fill the rest of the file, one after the other.
void check_places(std::vector<SafeTensor>& tensors, uint64_t bytes) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const SafeTensor& a, const SafeTensor& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t at = 0;
  for (const SafeTensor& t : tensors) {
    if (t.begin != at) fail("tensor {} begins at byte {}, where {} was expected", t.name, t.begin, at);
    at = t.end;
  }
  if (at != bytes) fail("tensors end at byte {} of {}", at, bytes);
}

}  // namespace

uint64_t safetensors_item_bytes(std::string_view dtype) {
  for (const Item& item : kItems)
    if (item.name == dtype) return item.bytes;
  return 0;
}

const SafeTensor* SafetensorsHeader::find(std::string_view name) const {
  for (const SafeTensor& t : tensors)
    if (t.name == name) return &t;
  return nullptr;
}

std::string SafetensorsHeader::save() const {
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + json_text(SortedJson(metadata));
  for (const SafeTensor& t : tensors) {
    if (text.size() > 1) text += ',';
    text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json_text(SortedJson(t.name)), t.dtype,
                        fmt::join(t.shape, ","), t.begin, t.end);
  }
  text += '}';
  text.append((kDataAlignment - (kLength + text.size()) % kDataAlignment) % kDataAlignment, ' ');
  const uint64_t length = text.size();
  std::string all(kLength, '\0');
  std::memcpy(all.data(), &length, kLength);
  return all + text;
}

SafetensorsHeader SafetensorsHeader::parse(std::string_view text, uint64_t file_bytes) {
  uint64_t length = 0;
  if (text.size() < kLength || file_bytes < kLength) fail("{} bytes are no safetensors file", file_bytes);
  std::memcpy(&length, text.data(), kLength);
  if (length > kMaxSafetensorsHeader || length > file_bytes - kLength) fail("a header of {} bytes in a file of {}", length, file_bytes);
  HLAT_CHECK(text.size() >= kLength + length, "{} bytes of a header of {}", text.size(), length);
  const SortedJson json = SortedJson::parse(text.substr(kLength, length), nullptr, false);
  if (!json.is_object()) fail("the header is no JSON object");
  SafetensorsHeader header;
  header.bytes = kLength + length;
  for (const auto& [name, entry] : json.items()) {
    if (name != "__metadata__") {
      header.tensors.push_back(tensor_of(name, entry));
      continue;
    }
    if (!entry.is_object()) fail("__metadata__ is no object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) fail("__metadata__ has a value that is no text: {}", key);
      header.metadata[key] = value.get<std::string>();
    }
  }
  check_places(header.tensors, file_bytes - header.bytes);
  return header;
}

SafetensorsHeader SafetensorsHeader::read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_storage(errno, "cannot open " + path.string());
  const uint64_t bytes = std::filesystem::file_size(path);
  std::string text(kLength, '\0');
  file.read(text.data(), kLength);
  uint64_t length = 0;
  if (file) std::memcpy(&length, text.data(), kLength);
  if (file && length <= kMaxSafetensorsHeader && length <= bytes - kLength) {
    text.resize(kLength + length);
    file.read(text.data() + kLength, static_cast<std::streamsize>(length));
    if (!file) fail<FaultError>("cannot read {}", path.string());
  }
  try {
    return parse(text, file ? bytes : 0);
  } catch (const Error& e) {
    fail<UsageError>("{}: {}", path.string(), e.what());
  }
}

}  // namespace hlat
