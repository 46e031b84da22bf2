#include "checkpoint/hf/hf_weights.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/f16.h"
#include "base/file.h"
#include "checkpoint/state_source.h"

namespace hlat {
namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

constexpr std::string_view kOneFile = "model.safetensors", kIndex = "model.safetensors.index.json";
constexpr uint64_t kMaxIndexBytes = uint64_t{64} << 20;

// Why there are no weights to read, in terms of what there is instead.
[[noreturn]] void no_weights(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string(), kind = it->path().extension().string();
    if (kind == ".bin" || kind == ".pt" || kind == ".pth" || kind == ".ckpt")
      fail<UsageError>(
          "{}: {} is a pickle file, a format that can execute code when it is read; convert the folder to safetensors first, in a process "
          "that you trust it with (transformers: AutoModelForCausalLM.from_pretrained(SRC).save_pretrained(DST))",
          folder.string(), name);
    if (kind == ".gguf") fail<UsageError>("{}: {} is a GGUF file; give the safetensors folder that it was made of", folder.string(), name);
  }
  fail<UsageError>("{}: has neither {} nor {}", folder.string(), kOneFile, kIndex);
}

// A shard lies in the folder itself: no other name is opened.
void check_shard_name(const fs::path& index, const std::string& name) {
  const bool plain = name.find('/') == std::string::npos && name.find('\\') == std::string::npos && name.find('\0') == std::string::npos &&
                     !name.starts_with('.') && name.size() < 256;
  if (!plain || !name.ends_with(".safetensors"))
    fail<UsageError>("{}: names '{}' as a shard; shards are safetensors files in the folder itself", index.string(), name);
}

// The elements of a file are F32, BF16 or F16.
void convert(std::string_view type, const std::byte* from, DType as, void* to, int64_t count) {
  if (type != "F16") return convert_elements(to, as, from, type == "F32" ? DType::f32 : DType::bf16, count);
  std::vector<float> wide(static_cast<size_t>(count));
  for (size_t i = 0; i < wide.size(); ++i) {
    f16 value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    wide[i] = to_float(value);
  }
  convert_elements(to, as, wide.data(), DType::f32, count);
}

}  // namespace

bool is_weight_type(std::string_view type) { return type == "F32" || type == "BF16" || type == "F16"; }

std::string_view safetensors_name(DType dtype) { return dtype == DType::bf16 ? "BF16" : "F32"; }

std::string read_small_file(const fs::path& path, uint64_t max_bytes) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (error) fail_storage(error.value(), "cannot open " + path.string());
  if (bytes > max_bytes) fail<UsageError>("{}: {} bytes are too many for such a file", path.string(), bytes);
  std::ifstream file(path, std::ios::binary);
  std::string text(bytes, '\0');
  if (!file) fail_storage(errno, "cannot open " + path.string());
  if (!file.read(text.data(), static_cast<std::streamsize>(bytes))) fail<FaultError>("cannot read {}", path.string());
  return text;
}

HfWeights::HfWeights(const fs::path& folder) {
  std::error_code error;
  if (fs::is_regular_file(folder / kOneFile, error))
    add(folder / kOneFile);
  else if (fs::is_regular_file(folder / kIndex, error))
    open_shards(folder / kIndex);
  else
    no_weights(folder);
}

HfWeights::~HfWeights() {
  for (const File& f : files_) close(f.fd);
}

void HfWeights::open_shards(const fs::path& index) {
  const Json json = Json::parse(read_small_file(index, kMaxIndexBytes), nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    fail<UsageError>("{}: is no index of shards: it has no weight_map", index.string());
  std::set<std::string> shards;
  for (const auto& [name, shard] : json["weight_map"].items()) {
    if (!shard.is_string()) fail<UsageError>("{}: the shard of {} is no text", index.string(), name);
    check_shard_name(index, shard.get<std::string>());
    shards.insert(shard.get<std::string>());
  }
  for (const std::string& shard : shards) add(index.parent_path() / shard);
  for (const auto& [name, shard] : json["weight_map"].items()) {
    const Entry* e = find(name);
    if (e == nullptr || file_of(*e).filename() != shard.get<std::string>())
      fail<UsageError>("{}: {} should hold {} and does not", index.string(), shard.get<std::string>(), name);
  }
}

void HfWeights::add(const fs::path& path) {
  std::error_code unknown;
  if (!fs::is_regular_file(path, unknown)) fail<UsageError>("{} is missing", path.string());
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_storage(errno, "cannot open " + path.string());
  files_.push_back({.path = path, .fd = fd});
  const SafetensorsHeader header = SafetensorsHeader::read(path);
  for (const SafeTensor& t : header.tensors) {
    const auto [place, fresh] =
        tensors_.try_emplace(t.name, Entry{.tensor = t, .file = files_.size() - 1, .offset = header.bytes + t.begin});
    if (!fresh) fail<UsageError>("{}: {} is also in {}", path.string(), t.name, file_of(place->second).filename().string());
  }
}

const HfWeights::Entry* HfWeights::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

void HfWeights::read(const Entry& e, int64_t first, int64_t count, DType as, void* to) const {
  constexpr int64_t kAtOnce = 1 << 18;  // elements
  const uint64_t item = safetensors_item_bytes(e.tensor.dtype);
  HLAT_CHECK(is_weight_type(e.tensor.dtype) && first >= 0 && count >= 0 &&
                 static_cast<uint64_t>(first + count) * item <= e.tensor.end - e.tensor.begin,
             "elements {} + {} of {}", first, count, e.tensor.name);
  const File& file = files_[e.file];
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(count, kAtOnce)) * item);
  for (int64_t begin = 0; begin < count; begin += kAtOnce) {
    const int64_t n = std::min(kAtOnce, count - begin);
    const size_t bytes = static_cast<size_t>(n) * item;
    for (size_t done = 0; done < bytes;) {
      const uint64_t at = e.offset + static_cast<uint64_t>(first + begin) * item + done;
      const ssize_t got = pread(file.fd, buffer.data() + done, bytes - done, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_storage(errno, "cannot read " + file.path.string());
      if (got == 0) fail<UsageError>("{}: ends at byte {}: it was cut while it was read", file.path.string(), at);
      done += static_cast<size_t>(got);
    }
    convert(e.tensor.dtype, buffer.data(), as, static_cast<std::byte*>(to) + static_cast<size_t>(begin) * size_of(as), n);
  }
}

}  // namespace hlat
