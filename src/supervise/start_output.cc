#include "supervise/start_output.h"

#include <sstream>
#include <string_view>
#include <utility>

namespace hlat {

namespace {

constexpr size_t kKept = 16384;
constexpr size_t kRule = 40;  // dashes
constexpr size_t kMostWords = 400;
constexpr std::string_view kOwn = "hlat: ";  // begins a message

bool is_rule(const std::string& line) { return line.size() >= kRule && line.find_first_not_of("-\r") == std::string::npos; }

// "[node-1:12345] ..."
bool is_daemon_line(const std::string& line) {
  const size_t end = line.find(']'), colon = line.find(':');
  return line.starts_with("[") && end != std::string::npos && colon != std::string::npos && colon < end &&
         line.find_first_not_of("0123456789", colon + 1) == end;
}

std::string shortened(std::string words) {
  if (words.size() > kMostWords) words = words.substr(0, kMostWords) + "...";
  return words;
}

// What may still become a notice is held until its line is whole.
bool may_be_notice(const std::string& part) { return part.starts_with("[") || part.find_first_not_of('-') == std::string::npos; }

}  // namespace

std::string StartOutput::take_line(const std::string& line) {
  if (is_rule(line)) {
    notice_ = !notice_;
    return {};
  }
  const bool own = notice_ || is_daemon_line(line) || line.starts_with("mpirun") || line.starts_with("Primary job  terminated") ||
                   line.starts_with("srun: error:") || line.starts_with("slurmstepd:");
  return own ? "" : line + "\n";
}

std::string StartOutput::pass(const std::string& text) {
  kept_ += text;
  if (kept_.size() > 2 * kKept) kept_.erase(0, kept_.size() - kKept);
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += take_line(line_);
      line_.clear();
    } else {
      line_ += c;
    }
  }
  if (!line_.empty() && !notice_ && !may_be_notice(line_)) {
    out += line_;
    line_.clear();
  }
  return out;
}

std::string last_words(const std::string& output) {
  std::string notice, last;  // the latest of each
  bool inside = false;
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    line.erase(0, line.find_first_not_of(' '));
    if (is_rule(line)) {
      inside = !inside;
      if (inside) notice.clear();
      continue;
    }
    if (line.empty()) continue;
    if (inside) notice += (notice.empty() ? "" : " ") + line;
    if (!inside) last = line;
  }
  return shortened(notice.empty() ? last : notice);
}

std::string failure_words(const std::string& output) {
  std::string words;
  std::istringstream in(StartOutput().pass(output + "\n"));
  for (std::string line; std::getline(in, line);) {
    line.erase(0, line.find_first_not_of(' '));
    const bool begins = line.starts_with(kOwn);
    if (begins && !words.empty()) break;
    if (begins)
      words = line.substr(kOwn.size());
    else if (!words.empty() && !line.empty())
      words += "; " + line;
  }
  return words.empty() ? last_words(output) : shortened(std::move(words));
}

}  // namespace hlat
