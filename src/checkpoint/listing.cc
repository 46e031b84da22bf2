#include "checkpoint/listing.h"

#include "checkpoint/checkpoint_folder.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

uint64_t bytes_in(const fs::path& folder) {
  uint64_t sum = 0;
  std::error_code error, unknown;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->is_regular_file(unknown)) sum += it->file_size(unknown);
  return sum;
}

ListedCheckpoint listed(const fs::path& parent, int64_t step) {
  ListedCheckpoint c{.folder = checkpoint_path(parent, step), .step = step};
  try {
    const CheckpointIndex index = read_index(c.folder);
    c.bytes = index.bytes();
    c.content = index.content;
    c.run = index.run;
    c.created = index.created;
    c.tokens = index.tokens;
    c.loss = index.loss;
    c.health = health_of(index);
    c.problem = missing_bytes(c.folder, index);
    if (c.problem.empty() && index.step != step) c.problem = fmt::format("it is the checkpoint of step {}", index.step);
  } catch (const Error& e) {  // a list shows what there is: this one is not whole
    c.problem = e.what();
    c.bytes = bytes_in(c.folder);
  }
  return c;
}

}  // namespace

std::string missing_bytes(const fs::path& folder, const CheckpointIndex& index) {
  std::string text;
  for (const SavedFile& file : index.files) {
    std::error_code error;
    const uint64_t bytes = fs::file_size(folder / file.name, error), wanted = file.bytes(index.tensors);
    if (!error && bytes == wanted) continue;
    text += text.empty() ? "" : ", ";
    text += error ? fmt::format("{} is missing", file.name) : fmt::format("{} has {} bytes instead of {}", file.name, bytes, wanted);
  }
  return text;
}

std::vector<ListedCheckpoint> list_checkpoints(const fs::path& parent) {
  std::vector<ListedCheckpoint> list;
  for (const int64_t step : checkpoint_steps(parent)) list.push_back(listed(parent, step));
  for (const Leftover& left : leftovers(parent))
    list.push_back({.folder = left.folder,
                    .step = left.step,
                    .problem = "left over from a save that did not end",
                    .leftover = true,
                    .bytes = bytes_in(left.folder)});
  return list;
}

}  // namespace hlat
