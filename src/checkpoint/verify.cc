#include "checkpoint/verify.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

namespace hlat {
namespace {

// The first element of a tensor that is not in exactly one of its pieces; none: all are.
std::optional<int64_t> misplaced_element(const std::vector<const Piece*>& pieces) {
  std::vector<std::pair<int64_t, int64_t>> runs;  // global elements [first, second)
  for (const Piece* p : pieces)
    p->map.for_runs(0, p->count, [&](int64_t begin, int64_t end, int64_t global) { runs.emplace_back(global, global + end - begin); });
  std::sort(runs.begin(), runs.end());
  int64_t next = 0;
  for (const auto& [first, end] : runs) {
    if (first != next) return std::min(first, next);
    next = end;
  }
  return {};
}

// Tensors whose pieces have the right number of elements, which is all that the index alone is held to, but not each element once.
void find_misplaced(const CheckpointReader& reader, std::vector<std::string>& problems) {
  const CheckpointIndex& index = reader.index();
  std::vector<std::vector<const Piece*>> of_tensor(index.tensors.size());
  for (const SavedFile& file : index.files)
    for (const Piece& p : file.pieces) of_tensor[static_cast<size_t>(p.tensor)].push_back(&p);
  for (size_t t = 0; t < of_tensor.size(); ++t)
    if (const auto element = misplaced_element(of_tensor[t]))
      problems.push_back(fmt::format("{}: element {} of {} {} is not in exactly one piece", reader.folder().string(), *element,
                                     name_of(index.tensors[t].kind), index.tensors[t].name));
}

}  // namespace

std::vector<std::string> find_damage(CheckpointReader& reader, int threads, const BytesDone& done) {
  const CheckpointIndex& index = reader.index();
  std::vector<std::pair<size_t, size_t>> pieces;  // file, piece
  for (size_t f = 0; f < index.files.size(); ++f)
    for (size_t p = 0; p < index.files[f].pieces.size(); ++p) pieces.emplace_back(f, p);
  std::mutex mutex;
  std::map<size_t, std::string> found;  // by number of the piece
  for_all(pieces.size(), threads, [&](size_t i) {
    const auto [file, piece] = pieces[i];
    try {
      reader.read_piece(file, piece);
    } catch (const DamagedCheckpoint& e) {
      const std::lock_guard lock(mutex);
      found.emplace(i, e.what());
    }
    if (done) done(piece_bytes(index.files[file].pieces[piece], index.tensors));
  });
  std::vector<std::string> problems;
  for (auto& [at, text] : found)  // what is wrong with a file as a whole comes with each of its pieces
    if (problems.empty() || problems.back() != text) problems.push_back(std::move(text));
  find_misplaced(reader, problems);
  return problems;
}

}  // namespace hlat
