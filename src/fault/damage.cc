#include "fault/damage.h"

#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <vector>

#include "base/bf16.h"
#include "base/file.h"
#include "base/fp8.h"

namespace hlat::fault {

namespace {

namespace fs = std::filesystem;

// Calls body with a reference to each element, as the type that has it, and puts the elements back.
template <class Body>
void change_elements(Device& device, const Tensor& t, const Body& body) {
  std::vector<std::byte> bytes(t.bytes());
  device.download(bytes.data(), t);
  const auto each = [&]<class T>(T value) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
      std::memcpy(&value, bytes.data() + at, sizeof(T));
      body(value);
      std::memcpy(bytes.data() + at, &value, sizeof(T));
    }
  };
  switch (t.dtype) {
    case DType::f32: each(float{}); break;
    case DType::bf16: each(bf16{}); break;
    case DType::f64: each(double{}); break;
    case DType::f8e4m3: each(f8e4m3{}); break;
    case DType::f8e5m2: each(f8e5m2{}); break;
    case DType::i32: fail("a fault in {}: it has no numbers with exponents", t.str());
  }
  device.upload(t, bytes.data());
}

struct SetNan {
  void operator()(float& x) const { x = std::numeric_limits<float>::quiet_NaN(); }
  void operator()(double& x) const { x = std::numeric_limits<double>::quiet_NaN(); }
  void operator()(bf16& x) const { x = to_bf16(std::numeric_limits<float>::quiet_NaN()); }
  void operator()(f8e4m3& x) const { x.bits = 0x7f; }
  void operator()(f8e5m2& x) const { x.bits = 0x7f; }
};

struct FlipBit {
  void operator()(float& x) const { x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^ (uint32_t{1} << 30)); }
  void operator()(double& x) const { x = std::bit_cast<double>(std::bit_cast<uint64_t>(x) ^ (uint64_t{1} << 62)); }
  void operator()(bf16& x) const { x.bits = static_cast<uint16_t>(x.bits ^ (1u << 14)); }
  void operator()(f8e4m3& x) const { x.bits = static_cast<uint8_t>(x.bits ^ (1u << 6)); }
  void operator()(f8e5m2& x) const { x.bits = static_cast<uint8_t>(x.bits ^ (1u << 6)); }
};

struct Multiply {
  double factor;
  void operator()(float& x) const { x = static_cast<float>(x * factor); }
  void operator()(double& x) const { x *= factor; }
  void operator()(bf16& x) const { x = to_bf16(static_cast<float>(to_float(x) * factor)); }
  void operator()(f8e4m3& x) const { x = to_e4m3(static_cast<float>(to_float(x) * factor)); }
  void operator()(f8e5m2& x) const { x = to_e5m2(static_cast<float>(to_float(x) * factor)); }
};

}  // namespace

void set_nan(Device& device, Tensor t, int64_t element) { change_elements(device, t.rows(element, element + 1), SetNan()); }
void flip_bit(Device& device, Tensor t, int64_t element) { change_elements(device, t.rows(element, element + 1), FlipBit()); }
void multiply(Device& device, Tensor t, double factor) { change_elements(device, t, Multiply{factor}); }

std::string change_bytes(const fs::path& folder) {
  fs::path file;
  uintmax_t size = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && entry.file_size() >= size) file = entry.path(), size = entry.file_size();
  std::array<char, 64> bytes{};
  if (size < bytes.size()) fail<FaultError>("{} has no file whose bytes could be changed", folder.string());
  std::fstream io(file, std::ios::binary | std::ios::in | std::ios::out);
  const auto middle = static_cast<std::streamoff>((size - bytes.size()) / 2);
  io.seekg(middle);
  io.read(bytes.data(), bytes.size());
  for (char& b : bytes) b = static_cast<char>(~b);
  io.seekp(middle);
  io.write(bytes.data(), bytes.size());
  io.close();
  if (!io) fail<FaultError>("cannot change bytes of {}", file.string());
  sync_to_disk(file);
  return file.filename().string();
}

}  // namespace hlat::fault
