#include "support/checkpoint_mutations.h"

#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checksum.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Random = std::mt19937_64;

uint64_t below(Random& random, uint64_t n) { return random() % std::max<uint64_t>(1, n); }

template <class T>
const T& one_of(Random& random, const std::vector<T>& items) {
  return items[below(random, items.size())];
}

fs::path newest(const fs::path& parent) { return parent / "step_4"; }
fs::path older(const fs::path& parent) { return parent / "step_2"; }

std::vector<fs::path> data_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

fs::path any_data(const fs::path& parent, Random& random) { return one_of(random, data_files(newest(parent))); }
fs::path any_file(const fs::path& parent, Random& random) {
  return below(random, 3) == 0 ? newest(parent) / kIndexName : any_data(parent, random);
}

void overwrite(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes; }

// Changes the bytes of a file.
void edit(const fs::path& path, const std::function<void(std::string&)>& change) {
  std::string bytes = slurp(path);
  change(bytes);
  overwrite(path, bytes);
}

void swap_paths(const fs::path& a, const fs::path& b) {
  const fs::path aside = a.string() + ".aside";
  fs::rename(a, aside);
  fs::rename(b, a);
  fs::rename(aside, b);
}

void flip_bits(std::string& bytes, Random& random) {
  // Half of them in the header, which is a small part.
  const uint64_t reach = below(random, 2) == 0 ? std::min<size_t>(bytes.size(), 2000) : bytes.size();
  for (uint64_t n = 1 + below(random, 3); n > 0; --n) bytes[below(random, reach)] ^= static_cast<char>(1u << below(random, 8));
}

// A block that the disk lost, or wrote elsewhere.
void misplace_block(std::string& bytes, Random& random) {
  const size_t block = std::min<size_t>(bytes.size() / 2, 512u << below(random, 4)), to = below(random, bytes.size() - block);
  if (below(random, 2) == 0) return bytes.replace(to, block, block, '\0'), void();
  const std::string other = bytes.substr(below(random, bytes.size() - block), block);
  bytes.replace(to, block, other);
}

void replace_by(const fs::path& path, Random& random) {
  const fs::path other = older(path.parent_path().parent_path()) / path.filename();
  fs::remove(path);
  switch (below(random, 7)) {
    case 0: fs::create_directory(path); return;
    case 1: fs::create_symlink(path.filename(), path); return;
    case 2: fs::create_symlink("nowhere", path); return;
    case 3: fs::create_symlink("/dev/zero", path); return;
    case 4: fs::create_symlink("/dev/null", path); return;
    case 5: fs::create_symlink(fs::absolute(other), path); return;
    default:
      if (mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("cannot make a FIFO");
  }
}

// The text of an index with a right checksum. `body` is its JSON object.
std::string signed_text(std::string body) {
  body.pop_back();
  return body + ",\n\"checksum\":\"" + checksum_text(checksum(body)) + "\"}\n";
}

void edit_json(const fs::path& parent, const std::function<void(Json&)>& change) {
  edit(newest(parent) / kIndexName, [&](std::string& text) {
    Json json = Json::parse(text);
    json.erase("checksum");
    change(json);
    text = signed_text(json.dump());
  });
}

void edit_index(const fs::path& parent, const std::function<void(CheckpointIndex&)>& change) {
  CheckpointIndex index = read_index(newest(parent));
  change(index);
  overwrite(newest(parent) / kIndexName, index.save());
}

SavedFile& any_file(CheckpointIndex& index, Random& random) { return index.files[below(random, index.files.size())]; }
Piece& any_piece(CheckpointIndex& index, Random& random) {
  SavedFile& file = any_file(index, random);
  return file.pieces[below(random, file.pieces.size())];
}
SavedTensor& any_tensor(CheckpointIndex& index, Random& random) { return index.tensors[below(random, index.tensors.size())]; }

// Two different ones that `alike` accepts, from all pairs.
template <class T, class Alike>
std::pair<T*, T*> pair_of(const std::vector<T*>& items, Random& random, const Alike& alike) {
  std::vector<std::pair<T*, T*>> pairs;
  for (T* a : items)
    for (T* b : items)
      if (a < b && alike(*a, *b)) pairs.emplace_back(a, b);
  if (pairs.empty()) throw std::runtime_error("no two of them are alike");
  return one_of(random, pairs);
}

std::vector<Piece*> all_pieces(CheckpointIndex& index) {
  std::vector<Piece*> all;
  for (SavedFile& file : index.files)
    for (Piece& piece : file.pieces) all.push_back(&piece);
  return all;
}

std::vector<SavedTensor*> all_tensors(CheckpointIndex& index) {
  std::vector<SavedTensor*> all;
  for (SavedTensor& tensor : index.tensors) all.push_back(&tensor);
  return all;
}

void move_slices(CheckpointIndex& index, Random& random) {
  const auto same_size = [](const Piece& a, const Piece& b) { return a.tensor == b.tensor && a.count == b.count && !(a.map == b.map); };
  const auto [a, b] = pair_of(all_pieces(index), random, same_size);
  std::swap(a->map, b->map);
}

// What one piece holds becomes another tensor's, of the same shape and type.
void exchange_tensors(CheckpointIndex& index, Random& random) {
  const auto alike = [&](const Piece& a, const Piece& b) {
    return a.tensor != b.tensor && a.map == b.map && a.count == b.count &&
           index.tensors[static_cast<size_t>(a.tensor)].dtype == index.tensors[static_cast<size_t>(b.tensor)].dtype;
  };
  const auto [a, b] = pair_of(all_pieces(index), random, alike);
  std::swap(a->tensor, b->tensor);
}

void exchange_names(CheckpointIndex& index, Random& random) {
  const auto alike = [](const SavedTensor& a, const SavedTensor& b) { return a.shape == b.shape && a.dtype == b.dtype; };
  const auto [a, b] = pair_of(all_tensors(index), random, alike);
  std::swap(a->name, b->name);
  std::swap(a->kind, b->kind);
}

void bend_map(Piece& piece, Random& random) {
  ElementMap& map = piece.map;
  switch (below(random, 4)) {
    case 0: map.run = static_cast<int64_t>(below(random, 100)), map.stride = map.run + static_cast<int64_t>(below(random, 100)); return;
    case 1: map.offset += static_cast<int64_t>(below(random, 64)); return;
    case 2: map.first += static_cast<int64_t>(below(random, 64)) - 32; return;
    default: map.stride = map.run > 0 ? map.stride + 1 + static_cast<int64_t>(below(random, 64)) : 0;
  }
}

// The index describes the first bytes of a file as its header, however many they are said to be.
void move_border(const fs::path& parent, Random& random) {
  edit_index(parent, [&](CheckpointIndex& index) {
    SavedFile& file = any_file(index, random);
    const int64_t by = static_cast<int64_t>(below(random, 512)) - 256;
    file.header_bytes = static_cast<uint64_t>(static_cast<int64_t>(file.header_bytes) + by);
    file.header_checksum = checksum(slurp(newest(parent) / file.name).substr(0, file.header_bytes));
  });
}

const std::vector<std::string>& path_tricks() {
  static const std::vector<std::string> tricks = {"../step_2/rank_0.safetensors",
                                                  "/etc/passwd",
                                                  "/dev/zero",
                                                  "",
                                                  ".",
                                                  "..",
                                                  "index.json",
                                                  "rank_0.safetensors/",
                                                  "./rank_0.safetensors",
                                                  "rank_0.safetensors\n",
                                                  std::string("rank_0.safetensors\0x", 20),
                                                  "..%2f",
                                                  std::string(5000, 'a')};
  return tricks;
}

const std::vector<Json>& odd_values() {
  static const std::vector<Json> values = {UINT64_MAX, INT64_MAX,     INT64_MIN,     -1, 0, 1, 1e300, 0.5, true, nullptr, "",
                                           "x",        Json::array(), Json::object()};
  return values;
}

// A place in the parts that say where tensors lie.
Json& any_place(Json& json, Random& random) {
  Json* at = &json[below(random, 2) == 0 ? "tensors" : "files"];
  while (at->is_structured() && !at->empty() && (at == &json["tensors"] || at == &json["files"] || below(random, 8) != 0)) {
    auto item = at->begin();
    std::advance(item, static_cast<int64_t>(below(random, at->size())));
    at = &*item;
  }
  return *at;
}

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

void nest_deeply(const fs::path& parent, Random& random) {
  edit(newest(parent) / kIndexName, [&](std::string& text) {
    text.resize(text.find(",\n\"checksum\":\""));
    const std::string deep = nested(size_t{100} << below(random, 14));
    const std::string key = one_of<std::string>(random, {"\"config\":", "\"loss\":", "\"records\":[", "\"tensors\":["});
    const bool in_list = key.ends_with('[');
    text.insert(text.find(key) + key.size(), in_list ? deep + "," : "{\"deep\":" + deep + "},\"older\":");
    text = signed_text(text + "}");
  });
}

std::vector<Mutation> damage() {
  return {
      {"flipped bits", true, [](auto& parent, auto& random) { edit(any_file(parent, random), [&](auto& b) { flip_bits(b, random); }); }},
      {"flipped bits of the index", true,
       [](auto& parent, auto& random) { edit(newest(parent) / kIndexName, [&](auto& b) { flip_bits(b, random); }); }},
      {"flipped bits of the older one", true,
       [](auto& parent, auto& random) { edit(data_files(older(parent)).front(), [&](auto& b) { flip_bits(b, random); }); }},
      {"cut", true,
       [](auto& parent, auto& random) { edit(any_file(parent, random), [&](auto& b) { b.resize(below(random, b.size())); }); }},
      {"longer", true,
       [](auto& parent, auto& random) { edit(any_file(parent, random), [&](auto& b) { b.append(1 + below(random, 9000), '\x20'); }); }},
      {"as long as a disk", true,
       [](auto& parent, auto& random) {
         std::error_code too_long_for_this_file_system;
         const fs::path path = any_file(parent, random);
         fs::resize_file(path, uint64_t{1} << 40, too_long_for_this_file_system);
         if (too_long_for_this_file_system) fs::resize_file(path, fs::file_size(path) + 1);
       }},
      {"a misplaced block", true,
       [](auto& parent, auto& random) { edit(any_file(parent, random), [&](auto& b) { misplace_block(b, random); }); }},
      {"files swapped within it", true,
       [](auto& parent, auto& random) {
         const auto files = data_files(newest(parent));
         const size_t first = below(random, files.size());
         swap_paths(files[first], files[(first + 1 + below(random, files.size() - 1)) % files.size()]);
       }},
      {"a file swapped with the older one's", false,
       [](auto& parent, auto& random) {
         const fs::path file = any_data(parent, random);
         swap_paths(file, older(parent) / file.filename());
       }},
      {"a file copied from the older one", true,
       [](auto& parent, auto& random) {
         const fs::path file = any_data(parent, random);
         fs::copy_file(older(parent) / file.filename(), file, fs::copy_options::overwrite_existing);
       }},
      {"the index of the older one", true,
       [](auto& parent, auto&) {
         fs::copy_file(older(parent) / kIndexName, newest(parent) / kIndexName, fs::copy_options::overwrite_existing);
       }},
      {"folders swapped", false, [](auto& parent, auto&) { swap_paths(newest(parent), older(parent)); }},
      {"the older one under a newer name", true,
       [](auto& parent, auto&) { fs::copy(older(parent), parent / "step_6", fs::copy_options::recursive); }},
      {"a file missing", true, [](auto& parent, auto& random) { fs::remove(any_file(parent, random)); }},
      {"a file of another kind", true, [](auto& parent, auto& random) { replace_by(any_file(parent, random), random); }},
      {"a folder of another kind", true,
       [](auto& parent, auto& random) {
         fs::remove_all(newest(parent));
         overwrite(newest(parent).string() + ".txt", "x");
         if (below(random, 2) == 0) overwrite(newest(parent), "x");
       }},
      {"a file renamed", true,
       [](auto& parent, auto& random) {
         const fs::path file = any_data(parent, random);
         fs::rename(file, file.parent_path() / "rank_9.safetensors");
       }},
  };
}

Mutation in_index(const std::string& name, const std::function<void(CheckpointIndex&, Random&)>& change) {
  return {"signed anew: " + name, false,
          [change](auto& parent, auto& random) { edit_index(parent, [&](CheckpointIndex& index) { change(index, random); }); }};
}

Mutation in_json(const std::string& name, const std::function<void(Json&, Random&)>& change) {
  return {"signed anew: " + name, false,
          [change](auto& parent, auto& random) { edit_json(parent, [&](Json& json) { change(json, random); }); }};
}

std::vector<Mutation> edits() {
  return {
      in_index("slices moved", move_slices),
      in_index("pieces of other tensors", exchange_tensors),
      in_index("names exchanged", exchange_names),
      in_index("a bent map", [](auto& index, auto& random) { bend_map(any_piece(index, random), random); }),
      in_index("another type",
               [](auto& index, auto& random) {
                 DType& type = any_tensor(index, random).dtype;
                 type = type == DType::f32 ? DType::bf16 : DType::f32;
               }),
      in_index("another length",
               [](auto& index, auto& random) { any_piece(index, random).count += static_cast<int64_t>(below(random, 100)) - 50; }),
      in_index("a shape turned round",
               [](auto& index, auto& random) {
                 Shape& shape = any_tensor(index, random).shape;
                 std::reverse(shape.dim.begin(), shape.dim.begin() + shape.rank);
               }),
      in_index("a tensor twice", [](auto& index, auto& random) { index.tensors.push_back(any_tensor(index, random)); }),
      in_index("tensors in another order", [](auto& index, auto& random) { std::swap(any_tensor(index, random), index.tensors.front()); }),
      in_index("a piece twice",
               [](auto& index, auto& random) {
                 SavedFile& file = any_file(index, random);
                 file.pieces.push_back(one_of(random, file.pieces));
               }),
      in_index("a piece less",
               [](auto& index, auto& random) {
                 SavedFile& file = any_file(index, random);
                 file.pieces.erase(file.pieces.begin() + static_cast<int64_t>(below(random, file.pieces.size())));
               }),
      in_index("pieces in another order",
               [](auto& index, auto& random) {
                 SavedFile& file = any_file(index, random);
                 std::shuffle(file.pieces.begin(), file.pieces.end(), random);
               }),
      in_index("files under each other's names",
               [](auto& index, auto& random) {
                 const size_t first = below(random, index.files.size());
                 std::swap(index.files[first].name, index.files[(first + 1) % index.files.size()].name);
               }),
      in_index("another run", [](auto& index, auto&) { index.run += "x"; }),
      in_index("another step", [](auto& index, auto& random) { index.step = static_cast<int64_t>(below(random, 10)) + 5; }),
      in_index("weights alone", [](auto& index, auto&) { index.content = CheckpointContent::weights; }),
      in_index("path tricks", [](auto& index, auto& random) { any_file(index, random).name = one_of(random, path_tricks()); }),
      in_json("odd values", [](auto& json, auto& random) { any_place(json, random) = one_of(random, odd_values()); }),
      in_json("a part less",
              [](auto& json, auto& random) {
                auto member = json.begin();
                std::advance(member, static_cast<int64_t>(below(random, json.size())));
                json.erase(member);
              }),
      in_json("another version",
              [](auto& json, auto& random) {
                json["version"] = one_of<Json>(random, {2, 1 << 20, 0, -1, "1", 1.5, nullptr});
              }),
      {"signed anew: the border of a header", false, move_border},
      {"signed anew: deep nesting", false, nest_deeply},
  };
}

}  // namespace

const std::vector<Mutation>& checkpoint_mutations() {
  static const std::vector<Mutation> all = [] {
    std::vector<Mutation> list = damage();
    for (Mutation& m : edits()) list.push_back(std::move(m));
    return list;
  }();
  return all;
}

}  // namespace hlat::test
