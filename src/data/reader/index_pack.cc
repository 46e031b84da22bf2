#include "data/reader/index_pack.h"

#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "data/reader/content_hash.h"

namespace hlat::reader {
namespace {

struct PackHeader {
  char magic[8] = {'h', 'l', 'a', 't', 'p', 'a', 'k', '\n'};
  uint64_t version = 1;
  uint64_t files = 0;
  uint64_t table = 0;  // where the entries begin; names behind them, to the end
  uint64_t table_bytes = 0;
  uint64_t table_hash = 0;
  uint64_t header_hash = 0;  // of all above
};

uint64_t hash_of(const PackHeader& h) { return hash_content({reinterpret_cast<const char*>(&h), offsetof(PackHeader, header_hash)}); }

bool sound(const PackHeader& h, uint64_t bytes) {
  const PackHeader expected;
  return std::memcmp(h.magic, expected.magic, sizeof h.magic) == 0 && h.version == expected.version && h.header_hash == hash_of(h) &&
         h.table <= bytes && h.table_bytes == bytes - h.table && h.files <= h.table_bytes / sizeof(PackEntry);
}

}  // namespace

std::unique_ptr<IndexPack> IndexPack::load(const std::string& path, const std::shared_ptr<OpenFiles>& files) {
  if (::access(path.c_str(), R_OK) != 0) return nullptr;
  auto pack = std::make_unique<IndexPack>();
  try {
    pack->file_ = std::make_shared<const IndexFile>(InputFile(path, files));
  } catch (const Error&) {
    return nullptr;  // gone or unreadable since: as if it were not there
  }
  const uint64_t size = pack->file_->input().size();
  const bool good = pack->file_->look([&](const char* data) {
    PackHeader header;
    if (size < sizeof header) return false;
    std::memcpy(&header, data, sizeof header);
    if (!sound(header, size) || hash_content({data + header.table, header.table_bytes}) != header.table_hash) return false;
    std::string_view names(data + header.table + header.files * sizeof(PackEntry), header.table_bytes - header.files * sizeof(PackEntry));
    pack->entries_.reserve(header.files);
    for (uint64_t i = 0; i < header.files; ++i) {
      PackEntry e;
      std::memcpy(&e, data + header.table + i * sizeof e, sizeof e);
      if (e.name_bytes > names.size() || e.begin > size || e.bytes > size - e.begin || e.bytes < sizeof(IndexHeader)) return false;
      pack->entries_.emplace(names.substr(0, e.name_bytes), e);
      names.remove_prefix(e.name_bytes);
    }
    return true;
  });
  return good ? std::move(pack) : nullptr;
}

const PackEntry* IndexPack::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::string IndexPack::image(const PackEntry& entry) const {
  return file_->look([&](const char* data) { return std::string(data + entry.begin, entry.bytes); });
}

IndexKey IndexPack::key(const PackEntry& entry) const {
  return file_->look([&](const char* data) {
    IndexHeader header;
    std::memcpy(&header, data + entry.begin, sizeof header);
    return header.key;
  });
}

IndexPackWriter::IndexPackWriter(std::string path) : path_(std::move(path)), out_(path_) {
  out_.write(std::string(sizeof(PackHeader), '\0'));  // a file without its header is no pack
}

void IndexPackWriter::add(const std::string& name, const FileStamp& stamp, std::string_view image) {
  out_.write(std::string((8 - out_.bytes() % 8) % 8, '\0'));
  entries_.push_back({.begin = out_.bytes(), .bytes = image.size(), .stamp = stamp, .name_bytes = name.size()});
  names_ += name;
  out_.write(image);
}

void IndexPackWriter::publish() {
  PackHeader header;
  header.files = entries_.size();
  header.table = out_.bytes();
  std::string table(reinterpret_cast<const char*>(entries_.data()), entries_.size() * sizeof(PackEntry));
  table += names_;
  header.table_bytes = table.size();
  header.table_hash = hash_content(table);
  header.header_hash = hash_of(header);
  out_.write(table);
  out_.flush();
  out_.write_at(0, {reinterpret_cast<const char*>(&header), sizeof header});
  out_.publish(path_);
}

}  // namespace hlat::reader
