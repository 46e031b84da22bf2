// Reads a checkpoint: any elements of any tensor, wherever their pieces lie. Pieces are read whole and verified before a byte of them is
// handed out, and the latest stay in a cache of bounded size, so reading a tensor from its beginning to its end reads each piece about once
// whatever the layout it was saved in. The latest files stay open; at first they are held against the index. From any thread.
#pragma once

#include <filesystem>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "checkpoint/index.h"

namespace hlat {

class FileInput;

class CheckpointReader {
 public:
  explicit CheckpointReader(std::filesystem::path folder, size_t cache_bytes = size_t{64} << 20);  // reads the index
  CheckpointReader(std::filesystem::path folder, CheckpointIndex index, size_t cache_bytes = size_t{64} << 20);
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  const CheckpointIndex& index() const { return index_; }
  const std::filesystem::path& folder() const { return folder_; }

  // Elements [first, first + count) of a tensor, in its type. DamagedCheckpoint names file and piece; FaultError when the disk fails.
  void read(int32_t tensor, int64_t first, int64_t count, void* to);
  // Elements [begin, end) as the map counts them.
  void read(int32_t tensor, const ElementMap& map, int64_t begin, int64_t end, void* to);
  // Opens, checks and reads everything, file by file. `done` is told about bytes as they pass.
  template <class Done>
  void verify(const Done& done) {
    for (size_t f = 0; f < index_.files.size(); ++f)
      for (size_t p = 0; p < index_.files[f].pieces.size(); ++p) done(read_piece(f, p)->size());
  }
  // The bytes of one piece, verified; the cache is neither asked nor filled.
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  Bytes read_piece(size_t file, size_t piece);
  uint64_t bytes_read() const;  // from the disk so far

 private:
  struct Place;  // a piece as a tensor's list has it

  void place_pieces();
  Bytes cached(size_t file, size_t piece);
  void keep(uint64_t key, const Bytes& bytes);  // under the lock
  using OpenFile = std::shared_ptr<const FileInput>;
  OpenFile open(size_t file);
  OpenFile find_open(size_t file);  // under the lock; null: not open

  std::filesystem::path folder_;
  CheckpointIndex index_;
  std::vector<std::vector<Place>> places_;  // by tensor, by the first global element
  size_t cache_bytes_;
  mutable std::mutex mutex_;
  std::list<std::pair<size_t, OpenFile>> open_files_;  // the latest first
  std::vector<bool> header_is_right_;                  // by file: it has been read
  std::list<std::pair<uint64_t, Bytes>> recent_;       // the latest first
  std::unordered_map<uint64_t, std::list<std::pair<uint64_t, Bytes>>::iterator> by_piece_;
  std::unordered_map<uint64_t, std::shared_future<Bytes>> loading_;
  size_t cached_bytes_ = 0;
  uint64_t bytes_read_ = 0;
};

}  // namespace hlat
