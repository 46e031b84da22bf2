#include "checkpoint/index.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_text.h"
#include "checkpoint/checksum.h"

namespace hlat {

namespace {

using Json = nlohmann::ordered_json;  // records and the config come back in the order they were written in

constexpr std::string_view kFormat = "hlat checkpoint";
constexpr std::string_view kSumKey = ",\n\"checksum\":\"";
constexpr std::string_view kEnd = "\"}\n";
constexpr std::array<std::string_view, kStateKinds> kKinds = {"weight", "master", "moment1", "moment2"};
constexpr std::array<std::string_view, 2> kContents = {"training", "weights"};
constexpr int64_t kMaxElements = int64_t{1} << 56;
constexpr int kMaxDepth = 64;  // of objects and lists
constexpr uint64_t kMaxHeader = uint64_t{1} << 28;

std::string_view file_type(DType t) { return t == DType::f32 ? "F32" : "BF16"; }

template <class... Args>
[[noreturn]] void damaged(fmt::format_string<Args...> text, Args&&... args) {
  fail<DamagedCheckpoint>(text, std::forward<Args>(args)...);
}

std::string quoted(const std::string& text) { return json_text(Json(text)); }

std::string piece_text(const Piece& p) {
  const std::string start = fmt::format("[{},{},{},\"{}\"", p.tensor, p.map.first, p.count, checksum_text(p.checksum));
  return p.map.one_run() ? start + "]" : fmt::format("{},{},{},{}]", start, p.map.run, p.map.stride, p.map.offset);
}

// Reads members of a JSON object, or of a list, with their types and limits checked.
class Members {
 public:
  Members(const Json& json, std::string what) : json_(json), what_(std::move(what)) {
    if (!json.is_object()) damaged("{} is no object", what_);
  }
  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) damaged("{} has no {}", what_, key);
    return *found;
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) damaged("{} of {} is no text", key, what_);
    return at(key).get<std::string>();
  }
  int64_t number(const char* key, int64_t lo, int64_t hi) const { return in_range(at(key), lo, hi, fmt::format("{} of {}", key, what_)); }
  const Json& list(const char* key) const {
    if (!at(key).is_array()) damaged("{} of {} is no list", key, what_);
    return at(key);
  }
  uint64_t sum(const char* key) const { return sum_of(at(key), fmt::format("{} of {}", key, what_)); }

  static int64_t in_range(const Json& value, int64_t lo, int64_t hi, const std::string& what) {
    const bool fits = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX);
    const int64_t n = fits ? value.get<int64_t>() : 0;
    if (!fits || n < lo || n > hi) damaged("{} is no whole number from {} to {}", what, lo, hi);
    return n;
  }
  static uint64_t sum_of(const Json& value, const std::string& what) {
    const auto n = value.is_string() ? parse_checksum(value.get<std::string>()) : std::nullopt;
    if (!n) damaged("{} is no checksum", what);
    return *n;
  }

 private:
  const Json& json_;
  std::string what_;
};

template <size_t N>
size_t name_in(const std::array<std::string_view, N>& names, const std::string& name, const std::string& what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) damaged("{} is {}, which is not known", what, name);
  return static_cast<size_t>(found - names.begin());
}

bool is_file_name(const std::string& name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-'; };
  return !name.empty() && name.size() < 128 && name.front() != '.' && std::all_of(name.begin(), name.end(), plain) && name != kIndexName;
}

SavedTensor tensor_of(const Json& json, size_t number) {
  const std::string what = fmt::format("tensor {}", number);
  const Members m(json, what);
  SavedTensor t;
  t.name = m.text("name");
  if (t.name.empty() || t.name.size() > 1024) damaged("{} has no name", what);
  t.kind = static_cast<StateKind>(name_in(kKinds, m.text("kind"), "the kind of " + what));
  const std::string type = m.text("dtype");
  if (type != "F32" && type != "BF16") damaged("{} has type {}", what, type);
  t.dtype = type == "F32" ? DType::f32 : DType::bf16;
  const Json& shape = m.list("shape");
  if (shape.empty() || shape.size() > 4) damaged("{} has {} dimensions", what, shape.size());
  int64_t elements = 1;
  for (const Json& d : shape) {
    const int64_t n = Members::in_range(d, 1, kMaxElements / elements, "a dimension of " + what);
    elements *= n;
    t.shape.dim[static_cast<size_t>(t.shape.rank++)] = n;
  }
  return t;
}

Piece piece_of(const Json& json, const std::vector<SavedTensor>& tensors, const std::string& what) {
  if (!json.is_array() || (json.size() != 4 && json.size() != 7)) damaged("{} is no list of 4 or 7", what);
  Piece p;
  p.tensor = static_cast<int32_t>(Members::in_range(json[0], 0, static_cast<int64_t>(tensors.size()) - 1, "the tensor of " + what));
  const SavedTensor& t = tensors[static_cast<size_t>(p.tensor)];
  const int64_t elements = t.shape.numel();
  p.map.first = Members::in_range(json[1], 0, elements - 1, "the first element of " + what);
  p.count = Members::in_range(json[2], 1, std::min(elements, static_cast<int64_t>(kMaxPiece / size_of(t.dtype))), "the length of " + what);
  p.checksum = Members::sum_of(json[3], "the checksum of " + what);
  if (json.size() == 7) {
    p.map.run = Members::in_range(json[4], 1, elements, "the run of " + what);
    p.map.stride = Members::in_range(json[5], p.map.run + 1, elements, "the stride of " + what);
    p.map.offset = Members::in_range(json[6], 0, elements, "the offset of " + what);
  }
  // Elements are in ascending order; compared so that nothing overflows.
  const int64_t end = p.map.offset + p.count - 1, room = elements - 1 - p.map.first;
  const bool fits =
      p.map.one_run() ? end <= room : end / p.map.run <= room / p.map.stride && end / p.map.run * p.map.stride + end % p.map.run <= room;
  if (!fits) damaged("{} goes beyond its tensor, {}", what, t.name);
  return p;
}

SavedFile file_of(const Json& json, const std::vector<SavedTensor>& tensors, size_t number) {
  const Members m(json, fmt::format("file {}", number));
  SavedFile file;
  file.name = m.text("name");
  if (!is_file_name(file.name)) damaged("file {} is not named like a file of a checkpoint", number);
  file.header_bytes = static_cast<uint64_t>(m.number("header_bytes", 8, kMaxHeader));
  file.header_checksum = m.sum("header_checksum");
  uint64_t at = file.header_bytes;
  for (const Json& piece : m.list("pieces")) {
    file.pieces.push_back(piece_of(piece, tensors, fmt::format("piece {} of {}", file.pieces.size(), file.name)));
    file.pieces.back().offset = at;
    at += piece_bytes(file.pieces.back(), tensors);
  }
  return file;
}

// Every tensor once, and as many elements of it in pieces as it has.
void check_whole(const CheckpointIndex& index) {
  std::set<std::pair<StateKind, std::string>> names;
  for (const SavedTensor& t : index.tensors) {
    if (!names.emplace(t.kind, t.name).second) damaged("{} {} is there twice", name_of(t.kind), t.name);
    if (index.content == CheckpointContent::weights && t.kind != StateKind::weight)
      damaged("a {} in a checkpoint of weights", name_of(t.kind));
  }
  std::set<std::string> files, records;
  std::vector<int64_t> elements(index.tensors.size());
  for (const SavedFile& file : index.files) {
    if (!files.insert(file.name).second) damaged("file {} is there twice", file.name);
    for (const Piece& p : file.pieces) {
      int64_t& n = elements[static_cast<size_t>(p.tensor)];
      n = std::min(n + p.count, kMaxElements + 1);
    }
  }
  for (size_t i = 0; i < elements.size(); ++i)
    if (elements[i] != index.tensors[i].shape.numel())
      damaged("{} {} has {} elements in its pieces and {} in its shape {}", name_of(index.tensors[i].kind), index.tensors[i].name,
              elements[i], index.tensors[i].shape.numel(), index.tensors[i].shape.str());
  for (const Record& r : index.records)
    if (!records.insert(r.name).second) damaged("record {} is there twice", r.name);
}

// The text before the checksum, which is right.
std::string_view checked(std::string_view text) {
  const size_t tail = kSumKey.size() + 16 + kEnd.size();
  if (text.size() < tail || !text.ends_with(kEnd) || text.substr(text.size() - tail, kSumKey.size()) != kSumKey)
    damaged("it does not end with its checksum: it was cut or changed");
  const auto sum = parse_checksum(text.substr(text.size() - kEnd.size() - 16, 16));
  text.remove_suffix(tail);
  if (!sum || *sum != checksum(text)) damaged("its checksum is wrong");
  return text;
}

// The parser takes any depth, but what is parsed is written again by functions that call themselves: deep text would end the process.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if ((c == '{' || c == '[') && ++depth > kMaxDepth) return true;
    if (c == '}' || c == ']') --depth;
  }
  return false;
}

std::string object_text(const Json& value, const std::string& what) {
  if (!value.is_object()) damaged("{} is no object", what);
  return json_text(value);
}

}  // namespace

std::string_view name_of(StateKind kind) { return kKinds[static_cast<size_t>(kind)]; }
std::string_view name_of(CheckpointContent content) { return kContents[static_cast<size_t>(content)]; }

uint64_t piece_bytes(const Piece& piece, const std::vector<SavedTensor>& tensors) {
  return static_cast<uint64_t>(piece.count) * size_of(tensors[static_cast<size_t>(piece.tensor)].dtype);
}

std::string piece_name(const Piece& piece, const std::vector<SavedTensor>& tensors) {
  const SavedTensor& t = tensors[static_cast<size_t>(piece.tensor)];
  return fmt::format("{}:{}:{}", name_of(t.kind), t.name, piece.map.global(0));
}

uint64_t SavedFile::bytes(const std::vector<SavedTensor>& tensors) const {
  return pieces.empty() ? header_bytes : pieces.back().offset + piece_bytes(pieces.back(), tensors);
}

uint64_t CheckpointIndex::bytes() const {
  uint64_t sum = 0;
  for (const SavedFile& file : files) sum += file.bytes(tensors);
  return sum;
}

const Record* CheckpointIndex::find_record(std::string_view name) const {
  const auto found = std::find_if(records.begin(), records.end(), [&](const Record& r) { return r.name == name; });
  return found == records.end() ? nullptr : &*found;
}

std::optional<int32_t> CheckpointIndex::find(StateKind kind, std::string_view name) const {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].kind == kind && tensors[i].name == name) return static_cast<int32_t>(i);
  return {};
}

// One line for each tensor, file and piece: people look into it, and it must not take long for a million pieces.
std::string CheckpointIndex::save() const {
  std::string text = fmt::format("{{\"format\":\"{}\",\n\"version\":{},\n\"content\":\"{}\",\n", kFormat, kIndexVersion, name_of(content));
  text += fmt::format("\"run\":{},\n\"hlat\":{},\n\"created\":{},\n", quoted(run), quoted(hlat), quoted(created));
  text += fmt::format("\"step\":{},\n\"tokens\":{},\n\"loss\":{},\n", step, tokens, json_text(loss ? Json(*loss) : Json()));
  text += fmt::format("\"config\":{},\n\"records\":[", config.empty() ? "{}" : config);
  for (const Record& r : records)
    text +=
        fmt::format("{}\n{{\"name\":{},\"version\":{},\"value\":{}}}", &r == records.data() ? "" : ",", quoted(r.name), r.version, r.json);
  text += "],\n\"tensors\":[";
  for (const SavedTensor& t : tensors) {
    std::string shape;
    for (int i = 0; i < t.shape.rank; ++i) shape += fmt::format("{}{}", i > 0 ? "," : "", t.shape[i]);
    text += fmt::format("{}\n{{\"name\":{},\"kind\":\"{}\",\"dtype\":\"{}\",\"shape\":[{}]}}", &t == tensors.data() ? "" : ",",
                        quoted(t.name), name_of(t.kind), file_type(t.dtype), shape);
  }
  text += "],\n\"files\":[";
  for (const SavedFile& f : files) {
    text += fmt::format("{}\n{{\"name\":{},\"header_bytes\":{},\"header_checksum\":\"{}\",\"pieces\":[", &f == files.data() ? "" : ",",
                        quoted(f.name), f.header_bytes, checksum_text(f.header_checksum));
    for (const Piece& p : f.pieces) text += (&p == f.pieces.data() ? "\n" : ",\n") + piece_text(p);
    text += "]}";
  }
  text += "]";
  return text + std::string(kSumKey) + checksum_text(checksum(text)) + std::string(kEnd);
}

CheckpointIndex CheckpointIndex::parse(std::string_view text) {
  const std::string_view body = checked(text);
  if (too_deep(body)) damaged("it is nested more than {} deep", kMaxDepth);
  const Json json = Json::parse(std::string(body) + "}", nullptr, false);
  if (json.is_discarded()) damaged("it is no JSON");
  const Members m(json, "the index");
  if (m.text("format") != kFormat) damaged("its format is {}", m.text("format"));
  const int64_t version = m.number("version", 1, 1 << 30);
  if (version > kIndexVersion) fail<UsageError>("its version is {}; this program reads up to {}: use a newer hlat", version, kIndexVersion);
  CheckpointIndex index;
  index.content = static_cast<CheckpointContent>(name_in(kContents, m.text("content"), "its content"));
  index.run = m.text("run");
  index.hlat = m.text("hlat");
  index.created = m.text("created");
  index.step = m.number("step", 0, kMaxElements);
  index.tokens = m.number("tokens", 0, INT64_MAX);
  if (m.at("loss").is_number()) index.loss = m.at("loss").get<double>();
  index.config = object_text(m.at("config"), "the config");
  for (const Json& r : m.list("records")) {
    const Members record(r, fmt::format("record {}", index.records.size()));
    index.records.push_back({record.text("name"), static_cast<int>(record.number("version", 1, 1 << 30)), json_text(record.at("value"))});
  }
  for (const Json& t : m.list("tensors")) index.tensors.push_back(tensor_of(t, index.tensors.size()));
  for (const Json& f : m.list("files")) index.files.push_back(file_of(f, index.tensors, index.files.size()));
  check_whole(index);
  return index;
}

}  // namespace hlat
