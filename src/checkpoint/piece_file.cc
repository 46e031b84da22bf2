#include "checkpoint/piece_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"

namespace hlat {

namespace {

constexpr uint64_t kUnwritten = uint64_t{4} << 30;  // bytes of a file that the system may hold back; more would only delay fsync

// Without an offset where there is no run to be counted from.
ElementMap moved(const ElementMap& map, int64_t by) {
  if (map.one_run()) return {.first = map.global(by)};
  return {.first = map.first, .run = map.run, .stride = map.stride, .offset = map.offset + by};
}

}  // namespace

void add_pieces(std::vector<Piece>& pieces, int32_t tensor, const SavedTensor& of, const ElementMap& map, int64_t count) {
  const auto most = static_cast<int64_t>(kMaxPiece / size_of(of.dtype));
  for (int64_t done = 0; done < count; done += most)
    pieces.push_back({.tensor = tensor, .map = moved(map, done), .count = std::min(most, count - done)});
}

SafetensorsHeader piece_header(const std::vector<SavedTensor>& tensors, const std::vector<Piece>& pieces, const std::string& run,
                               int64_t step) {
  SafetensorsHeader header;
  header.metadata = {{"format", "hlat checkpoint"}, {"run", run}, {"step", std::to_string(step)}};
  uint64_t at = 0;
  for (const Piece& p : pieces) {
    const uint64_t end = at + piece_bytes(p, tensors);
    const DType type = tensors[static_cast<size_t>(p.tensor)].dtype;
    header.tensors.push_back(
        {.name = piece_name(p, tensors), .dtype = type == DType::f32 ? "F32" : "BF16", .shape = {p.count}, .begin = at, .end = end});
    at = end;
  }
  return header;
}

PieceFile::PieceFile(const std::filesystem::path& path, const std::vector<SavedTensor>& tensors, std::vector<Piece> pieces,
                     const std::string& run, int64_t step)
    : path_(path) {
  const std::string header = piece_header(tensors, pieces, run, step).save();
  file_ = {.name = path.filename(), .header_bytes = header.size(), .header_checksum = checksum(header), .pieces = std::move(pieces)};
  for (Piece& p : file_.pieces) {
    p.offset = file_.header_bytes + bytes_;
    sizes_.push_back(piece_bytes(p, tensors));
    bytes_ += sizes_.back();
  }
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_storage(errno, "cannot create " + path.string());
  put(header.data(), header.size(), 0);
}

PieceFile::~PieceFile() {
  if (fd_ >= 0) close(fd_);
}

void PieceFile::put(const void* data, size_t bytes, uint64_t offset) {
  const auto* from = static_cast<const std::byte*>(data);
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = pwrite(fd_, from + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno != EINTR) fail_storage(errno, "cannot write " + path_.string());
    if (n > 0) done += static_cast<size_t>(n);
  }
  // The disk begins now, not when fsync asks for it. Advice: where it is not understood, fsync does all.
  sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
  // What fsync still has to wait for stays small: whoever looks for progress sees that of the disk. An error that is told here is told
  // once.
  if (offset < kUnwritten) return;
  const unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (sync_file_range(fd_, static_cast<off_t>(offset - kUnwritten), static_cast<off_t>(bytes), wait) == 0) return;
  if (errno == EIO || errno == ENOSPC || errno == EDQUOT) fail_storage(errno, "cannot write " + path_.string());
}

void PieceFile::write(const void* data, size_t bytes) {
  HLAT_CHECK(written_ + bytes <= bytes_, "{} + {} bytes for pieces of {}", written_, bytes, bytes_);
  const auto* from = static_cast<const std::byte*>(data);
  for (size_t done = 0; done < bytes;) {
    const size_t n = std::min<size_t>(bytes - done, sizes_[piece_] - of_piece_);
    running_.add(from + done, n);
    done += n;
    of_piece_ += n;
    if (of_piece_ < sizes_[piece_]) continue;
    file_.pieces[piece_++].checksum = running_.take();
    of_piece_ = 0;
  }
  put(data, bytes, file_.header_bytes + written_);
  written_ += bytes;
}

SavedFile PieceFile::finish() {
  HLAT_CHECK(written_ == bytes_, "{} bytes of {}", written_, bytes_);
  const int error = fsync(fd_) != 0 ? errno : 0;
  posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);  // nobody reads it soon: the memory is better used otherwise
  const int closed = close(std::exchange(fd_, -1)) != 0 ? errno : 0;
  if (error != 0 || closed != 0) fail_storage(error != 0 ? error : closed, "cannot write " + path_.string());
  return std::move(file_);
}

}  // namespace hlat
