// Bytes as the index of a .jsonl file. As they are, the index is damaged and must be made anew; with checksums and key set right, it
// is trusted, and what it says about places and lengths must still do no harm.
#include <cstring>

#include "data/reader/content_hash.h"
#include "data/reader/index.h"
#include "fuzz/fuzz_reader.h"

namespace {

using hlat::fuzz::folder;

constexpr std::string_view kLines = "{\"text\": \"one\"}\n{\"text\": \"two\"}\n{\"text\": \"three\"}\n";

std::string index_path() { return std::filesystem::directory_iterator(folder() + "/.hlat")->path().string(); }

hlat::reader::IndexHeader read_header(const std::string& path) {
  hlat::reader::IndexHeader header;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
  return header;
}

// The bytes with magic, version, key and checksums as a reader expects them.
std::string believable(std::string bytes, const hlat::reader::IndexHeader& good) {
  hlat::reader::IndexHeader header;
  bytes.resize(std::max(bytes.size(), sizeof header));
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(header.magic, good.magic, sizeof header.magic);
  header.version = good.version;
  header.key = good.key;
  if (header.body > bytes.size()) header.body = sizeof header;
  header.body_bytes = bytes.size() - header.body;
  header.body_hash = hlat::reader::hash_content(std::string_view(bytes).substr(header.body));
  header.header_hash = hlat::reader::header_hash(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string lines = hlat::fuzz::write_file("a.jsonl", kLines);
  static const std::string index = (hlat::open_documents(lines, {}), index_path());
  static const hlat::reader::IndexHeader good = read_header(index);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string name = ".hlat/" + std::filesystem::path(index).filename().string();

  hlat::fuzz::write_file(name, believable(bytes, good));
  try {
    hlat::fuzz::read_everything(*hlat::open_documents(lines, {.bad_share = 1.0}));
  } catch (const hlat::Error&) {
  }
  hlat::fuzz::write_file(name, bytes);
  if (hlat::open_documents(lines, {})->documents() != 3) std::abort();
  return 0;
}
