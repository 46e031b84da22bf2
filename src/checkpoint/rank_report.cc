#include "checkpoint/rank_report.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>

#include "base/packed.h"

namespace hlat {

namespace {

constexpr int kSizeTag = 1, kReportTag = 2;

// Bytes as a tensor: there is no type of one byte, so they are padded.
struct Message {
  explicit Message(uint64_t bytes) : words((bytes + 3) / 4) {}
  Tensor tensor() { return Tensor::contiguous(words.data(), DType::i32, {static_cast<int64_t>(words.size())}); }
  std::vector<int32_t> words;
};

std::string receive(Comm& comm, int rank) {
  uint64_t bytes = 0;
  Request size = comm.recv(Tensor::contiguous(&bytes, DType::i32, {2}), rank, kSizeTag);
  comm.wait(size);
  Message message(bytes);
  Request body = comm.recv(message.tensor(), rank, kReportTag);
  comm.wait(body);
  std::string text(bytes, '\0');
  std::memcpy(text.data(), message.words.data(), bytes);
  return text;
}

void send(Comm& comm, const std::string& text) {
  uint64_t bytes = text.size();
  Request size = comm.send(Tensor::contiguous(&bytes, DType::i32, {2}), 0, kSizeTag);
  Message message(bytes);
  std::memcpy(message.words.data(), text.data(), bytes);
  Request body = comm.send(message.tensor(), 0, kReportTag);
  comm.wait(size);
  comm.wait(body);
}

// The number at the beginning, taken off; without leading zeros its length and digits order it.
std::string_view take_number(std::string_view& text) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

// "layers.9.x" before "layers.10.x".
bool before(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    const std::string_view x = take_number(a), y = take_number(b);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
    if (a.empty() || b.empty()) break;
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;
}

struct InOrder {
  bool operator()(const SavedTensor* a, const SavedTensor* b) const {
    return a->name != b->name ? before(a->name, b->name) : a->kind < b->kind;
  }
};

}  // namespace

std::string RankReport::pack() const {
  Packer p;
  p.add(uint64_t{tensors.size()});
  for (const SavedTensor& t : tensors) {
    p.add(t.name);
    p.add(t.kind);
    p.add(t.dtype);
    p.add(t.shape);
  }
  p.add(file.has_value());
  if (file) {
    p.add(file->name);
    p.add(file->header_bytes);
    p.add(file->header_checksum);
    p.add(file->pieces);
  }
  p.add(record);
  return p.take();
}

RankReport RankReport::unpack(std::string_view text) {
  Unpacker u(text, "a rank's report");
  RankReport report;
  report.tensors.resize(u.count(sizeof(Shape)));
  for (SavedTensor& t : report.tensors) {
    t.name = u.text();
    t.kind = u.get<StateKind>();
    t.dtype = u.get<DType>();
    t.shape = u.get<Shape>();
  }
  if (u.get<bool>()) {
    SavedFile& file = report.file.emplace();
    file.name = u.text();
    file.header_bytes = u.get<uint64_t>();
    file.header_checksum = u.get<uint64_t>();
    file.pieces = u.list<Piece>();
  }
  report.record = u.text();
  return report;
}

std::vector<RankReport> gather_reports(Comm* comm, RankReport own) {
  std::vector<RankReport> all;
  if (comm != nullptr && comm->rank() > 0) {
    send(*comm, own.pack());
    return all;
  }
  all.push_back(std::move(own));
  for (int r = 1; comm != nullptr && r < comm->size(); ++r) all.push_back(RankReport::unpack(receive(*comm, r)));
  return all;
}

void add_files(CheckpointIndex& index, std::vector<RankReport>& reports) {
  std::map<const SavedTensor*, int32_t, InOrder> numbers;
  for (const RankReport& report : reports)
    for (const SavedTensor& t : report.tensors) {
      const auto [found, is_new] = numbers.try_emplace(&t, 0);
      if (!is_new && !(*found->first == t)) fail("ranks have {} {} in different shapes or types", t.name, name_of(t.kind));
    }
  for (auto& [tensor, number] : numbers) {
    number = static_cast<int32_t>(index.tensors.size());
    index.tensors.push_back(*tensor);
  }
  std::vector<int64_t> elements(index.tensors.size());
  for (RankReport& report : reports) {
    if (!report.file) continue;
    for (Piece& piece : report.file->pieces) {
      HLAT_CHECK(0 <= piece.tensor && static_cast<size_t>(piece.tensor) < report.tensors.size(), "a piece of tensor {}", piece.tensor);
      piece.tensor = numbers.at(&report.tensors[static_cast<size_t>(piece.tensor)]);
      elements[static_cast<size_t>(piece.tensor)] += piece.count;
    }
    index.files.push_back(std::move(*report.file));
  }
  for (size_t t = 0; t < elements.size(); ++t)
    if (elements[t] != index.tensors[t].shape.numel())
      fail("{} of the {} elements of {} {} were written", elements[t], index.tensors[t].shape.numel(), index.tensors[t].name,
           name_of(index.tensors[t].kind));
}

}  // namespace hlat
