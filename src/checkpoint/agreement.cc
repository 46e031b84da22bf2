#include "checkpoint/agreement.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "checkpoint/file_input.h"
#include "comm/host_exchange.h"

namespace hlat {
namespace {

constexpr size_t kMostFailures = 8;  // that a message tells about

// By what decides: the first kind that any rank has is thrown by all.
enum Kind : char { kOther = '0', kUsage, kDamaged, kMissing, kFault };

// The texts of a group's ranks, in rank order.
std::vector<std::string> gather_texts(Comm& group, const std::string& own) {
  const std::vector<uint64_t> sizes = all_gather_values<uint64_t>(group, own.size());
  const uint64_t most = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::string> texts(sizes.size());
  if (most == 0) return texts;
  std::string all(most * sizes.size(), '\0');
  std::memcpy(all.data() + most * static_cast<size_t>(group.rank()), own.data(), own.size());
  group.host().all_gather_bytes(all.data(), most);
  for (size_t r = 0; r < sizes.size(); ++r) texts[r] = all.substr(most * r, sizes[r]);
  return texts;
}

// Each line ends with a zero byte: a line may have line feeds in it.
std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text.append(line).push_back('\0');
  return text;
}

void add_lines(std::vector<std::string>& lines, const std::string& text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\0', begin);
    std::string line = text.substr(begin, end - begin);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
    begin = end + 1;
  }
}

[[noreturn]] void throw_kind(char kind, const std::string& text) {
  if (kind == kUsage) throw UsageError(text);
  if (kind == kDamaged) throw DamagedCheckpoint(text);
  if (kind == kMissing) throw MissingBytes(text);
  if (kind == kFault) throw FaultError(text);
  throw Error(text);
}

}  // namespace

std::vector<std::string> union_over(const Mesh& mesh, const std::vector<std::string>& lines) {
  std::vector<std::string> all = lines;
  for (const Axis axis : {Axis::tp, Axis::dp, Axis::pp}) {
    const std::vector<std::string> texts = gather_texts(mesh.along(axis), joined(all));
    all.clear();
    for (const std::string& text : texts) add_lines(all, text);
  }
  return all;
}

void together(const Mesh& mesh, const std::function<void()>& work) {
  std::exception_ptr other;
  std::vector<std::string> own;
  const auto failed = [&](char kind, const std::exception& e) {
    const std::string where = mesh.shape().ranks() > 1 ? fmt::format("rank {}: ", rank_of(mesh.coord(), mesh.shape())) : "";
    own = {fmt::format("{}{}{}", kind, where, e.what())};
  };
  try {
    work();
  } catch (const MissingBytes& e) {
    failed(kMissing, e);
  } catch (const DamagedCheckpoint& e) {
    failed(kDamaged, e);
  } catch (const UsageError& e) {
    failed(kUsage, e);
  } catch (const FaultError& e) {
    failed(kFault, e);
  } catch (const std::exception& e) {
    other = std::current_exception();
    failed(kOther, e);
  }
  std::vector<std::string> all = union_over(mesh, own);
  if (other) std::rethrow_exception(other);
  if (all.empty()) return;
  const char kind = (*std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; }))[0];
  std::erase_if(all, [&](const std::string& line) { return line[0] != kind; });
  std::string text;
  for (size_t i = 0; i < std::min(all.size(), kMostFailures); ++i) text += (i > 0 ? "\n" : "") + all[i].substr(1);
  if (all.size() > kMostFailures) text += fmt::format("\nand {} more ranks", all.size() - kMostFailures);
  throw_kind(kind, text);
}

}  // namespace hlat
