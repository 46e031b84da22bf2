#include "checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checksum.h"
#include "checkpoint/file_input.h"
#include "checkpoint/piece_file.h"

namespace hlat {

// lo and hi enclose its global elements; reach is the largest hi up to here in the list.
struct CheckpointReader::Place {
  size_t file = 0, piece = 0;
  int64_t lo = 0, hi = 0, reach = 0;
};

namespace {

constexpr size_t kMostOpen = 64;  // a run of thousands of ranks has more files than a process may have open

// The header of a file repeats what the index says of it. Where an index was changed and signed anew, or lies in another's folder, the two
// differ. What the format may add later is not looked at.
void check_header(const std::string& text, uint64_t file_bytes, const SafetensorsHeader& wanted, const std::string& path) {
  SafetensorsHeader header;
  uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);  // the index has at least so many bytes
  if (length != text.size() - sizeof length)
    fail<DamagedCheckpoint>("{}: its header has {} bytes, and {} in the index", path, length, text.size() - sizeof length);
  try {
    header = SafetensorsHeader::parse(text, file_bytes);
  } catch (const Error& e) {
    fail<DamagedCheckpoint>("{}: {}", path, e.what());
  }
  for (const auto& [key, value] : wanted.metadata)
    if (const auto found = header.metadata.find(key); found == header.metadata.end() || found->second != value)
      fail<DamagedCheckpoint>("{}: its {} is {}, that of the index is {}", path, key,
                              found == header.metadata.end() ? "not there" : found->second, value);
  const auto [has, wants] = std::mismatch(header.tensors.begin(), header.tensors.end(), wanted.tensors.begin(), wanted.tensors.end());
  if (has != header.tensors.end() || wants != wanted.tensors.end())
    fail<DamagedCheckpoint>("{}: piece {} is {} in its header, and {} in the index", path, has - header.tensors.begin(),
                            has == header.tensors.end() ? "not there" : has->name,
                            wants == wanted.tensors.end() ? "not there" : wants->name);
}

// Calls f(local, global, count) for the runs of a piece within global elements [begin, end).
template <class F>
void for_overlaps(const Piece& p, int64_t begin, int64_t end, const F& f) {
  const ElementMap& m = p.map;
  if (m.one_run()) {
    const int64_t first = m.global(0), a = std::max(begin, first), b = std::min(end, first + p.count);
    if (a < b) f(a - first, a, b - a);
    return;
  }
  const int64_t from = std::max<int64_t>(0, (begin - m.first) / m.stride), last = (end - 1 - m.first) / m.stride;
  for (int64_t r = from; r <= last; ++r) {
    const int64_t row = m.first + r * m.stride, local = r * m.run - m.offset;  // the run's first element, as if it were here
    const int64_t a = std::max({begin, row, row - local}), b = std::min({end, row + m.run, row - local + p.count});
    if (a < b) f(local + a - row, a, b - a);
  }
}

}  // namespace

CheckpointReader::CheckpointReader(std::filesystem::path folder, size_t cache_bytes)
    : CheckpointReader(folder, read_index(folder), cache_bytes) {}

CheckpointReader::CheckpointReader(std::filesystem::path folder, CheckpointIndex index, size_t cache_bytes)
    : folder_(std::move(folder)),
      index_(std::move(index)),
      places_(index_.tensors.size()),
      cache_bytes_(cache_bytes),
      header_is_right_(index_.files.size()) {
  place_pieces();
}

CheckpointReader::~CheckpointReader() = default;

void CheckpointReader::place_pieces() {
  for (size_t f = 0; f < index_.files.size(); ++f)
    for (size_t i = 0; i < index_.files[f].pieces.size(); ++i) {
      const Piece& p = index_.files[f].pieces[i];
      places_[static_cast<size_t>(p.tensor)].push_back({f, i, p.map.global(0), p.map.global(p.count - 1) + 1});
    }
  for (std::vector<Place>& places : places_) {
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.lo < b.lo; });
    int64_t reach = 0;
    for (Place& p : places) p.reach = reach = std::max(reach, p.hi);
  }
}

CheckpointReader::OpenFile CheckpointReader::find_open(size_t number) {
  const auto found = std::find_if(open_files_.begin(), open_files_.end(), [&](const auto& f) { return f.first == number; });
  if (found == open_files_.end()) return nullptr;
  open_files_.splice(open_files_.begin(), open_files_, found);
  return found->second;
}

CheckpointReader::OpenFile CheckpointReader::open(size_t number) {
  bool is_right = false;
  {
    const std::lock_guard lock(mutex_);
    if (OpenFile file = find_open(number)) return file;
    is_right = header_is_right_[number];
  }
  const SavedFile& file = index_.files[number];
  const std::string path = (folder_ / file.name).string();
  auto opened = std::make_shared<const FileInput>(path);
  if (opened->bytes() != file.bytes(index_.tensors))
    fail<MissingBytes>("{} has {} bytes instead of {}", path, opened->bytes(), file.bytes(index_.tensors));
  if (!is_right) {
    std::string header(file.header_bytes, '\0');
    opened->read(header.data(), header.size(), 0);
    if (checksum(header) != file.header_checksum) fail<DamagedCheckpoint>("{}: its header is not the one that was saved", path);
    check_header(header, opened->bytes(), piece_header(index_.tensors, file.pieces, index_.run, index_.step), path);
  }
  const std::lock_guard lock(mutex_);
  header_is_right_[number] = true;
  if (OpenFile other = find_open(number)) return other;  // of another thread
  open_files_.emplace_front(number, opened);
  if (open_files_.size() > kMostOpen) open_files_.pop_back();
  return opened;
}

CheckpointReader::Bytes CheckpointReader::read_piece(size_t file, size_t piece) {
  const Piece& p = index_.files[file].pieces[piece];
  const std::string path = (folder_ / index_.files[file].name).string();
  const auto bytes = std::make_shared<std::vector<std::byte>>(piece_bytes(p, index_.tensors));
  open(file)->read(bytes->data(), bytes->size(), p.offset);
  if (checksum(bytes->data(), bytes->size()) != p.checksum)
    fail<DamagedCheckpoint>("{}: piece {} ({}) is not what was saved: its checksum is wrong", path, piece, piece_name(p, index_.tensors));
  const std::lock_guard lock(mutex_);
  bytes_read_ += bytes->size();
  return bytes;
}

void CheckpointReader::keep(uint64_t key, const Bytes& bytes) {
  recent_.emplace_front(key, bytes);
  by_piece_[key] = recent_.begin();
  cached_bytes_ += bytes->size();
  while (cached_bytes_ > cache_bytes_ && recent_.size() > 1) {
    cached_bytes_ -= recent_.back().second->size();
    by_piece_.erase(recent_.back().first);
    recent_.pop_back();
  }
}

// Threads that want the same piece at a time share one read of it.
CheckpointReader::Bytes CheckpointReader::cached(size_t file, size_t piece) {
  const uint64_t key = (static_cast<uint64_t>(file) << 32) | piece;
  std::promise<Bytes> promise;
  {
    std::unique_lock lock(mutex_);
    if (const auto found = by_piece_.find(key); found != by_piece_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->second;
    }
    if (const auto found = loading_.find(key); found != loading_.end()) {
      const std::shared_future<Bytes> under_way = found->second;
      lock.unlock();
      return under_way.get();
    }
    loading_.emplace(key, promise.get_future().share());
  }
  try {
    Bytes bytes = read_piece(file, piece);
    promise.set_value(bytes);
    const std::lock_guard lock(mutex_);
    loading_.erase(key);
    keep(key, bytes);
    return bytes;
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(mutex_);
    loading_.erase(key);
    throw;
  }
}

void CheckpointReader::read(int32_t tensor, int64_t first, int64_t count, void* to) {
  const SavedTensor& t = index_.tensors.at(static_cast<size_t>(tensor));
  HLAT_CHECK(first >= 0 && count >= 0 && first + count <= t.shape.numel(), "elements {} + {} of {} {}", first, count, t.name,
             t.shape.str());
  const std::vector<Place>& places = places_[static_cast<size_t>(tensor)];
  const size_t item = size_of(t.dtype);
  std::vector<std::pair<int64_t, int64_t>> found;  // first and last global element of what was copied
  auto at = std::lower_bound(places.begin(), places.end(), first + count, [](const Place& p, int64_t end) { return p.lo < end; });
  while (at != places.begin() && (--at)->reach > first) {
    if (at->hi <= first) continue;
    Bytes bytes;
    for_overlaps(index_.files[at->file].pieces[at->piece], first, first + count, [&](int64_t local, int64_t global, int64_t n) {
      if (bytes == nullptr) bytes = cached(at->file, at->piece);
      std::memcpy(static_cast<std::byte*>(to) + static_cast<size_t>(global - first) * item,
                  bytes->data() + static_cast<size_t>(local) * item, static_cast<size_t>(n) * item);
      found.emplace_back(global, global + n);
    });
  }
  std::sort(found.begin(), found.end());
  int64_t next = first;
  for (const auto& [begin, end] : found) {
    if (begin != next) break;
    next = end;
  }
  if (next != first + count || (!found.empty() && found.back().second != next))
    fail<DamagedCheckpoint>("{}: element {} of {} {} is not in exactly one piece", folder_.string(), next, name_of(t.kind), t.name);
}

void CheckpointReader::read(int32_t tensor, const ElementMap& map, int64_t begin, int64_t end, void* to) {
  const size_t item = size_of(index_.tensors.at(static_cast<size_t>(tensor)).dtype);
  map.for_runs(begin, end, [&](int64_t from, int64_t stop, int64_t global) {
    read(tensor, global, stop - from, static_cast<std::byte*>(to) + static_cast<size_t>(from - begin) * item);
  });
}

uint64_t CheckpointReader::bytes_read() const {
  const std::lock_guard lock(mutex_);
  return bytes_read_;
}

}  // namespace hlat
