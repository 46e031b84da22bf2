#include "data/reader/records.h"

#include <algorithm>
#include <cstring>

#include "data/reader/utf8.h"

namespace hlat::reader {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kBreaks = "\r\n";

std::string_view trimmed(std::string_view text, std::string_view what) {
  const size_t begin = text.find_first_not_of(what);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(what) + 1 - begin);
}

std::string_view without_mark(std::string_view text, bool first) {
  if (first && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

// Texts that a separator ends. Lines are those that "\n" ends; of JSON lines each is handed out as it is.
class Separated final : public Records {
 public:
  Separated(std::string separator, bool trim) : separator_(std::move(separator)), trim_(trim) {}

  size_t whole(std::string_view data, size_t seen) override {
    if (lines()) {
      const size_t last = data.substr(seen).rfind('\n');
      return last == std::string_view::npos ? 0 : seen + last + 1;
    }
    // From the left, as each() does: where a separator can overlap itself the last one from the right is another.
    size_t from = seen >= separator_.size() ? seen - separator_.size() + 1 : 0;
    from = std::max(from, seen - std::min(unended_, seen));
    size_t end = 0;
    for (size_t at = 0; (at = data.find(separator_, from)) != std::string_view::npos;) end = from = at + separator_.size();
    unended_ = end > 0 ? data.size() - end : unended_ + data.size() - seen;
    return end;
  }
  void each(std::string_view batch, bool first, const Take& take) const override {
    if (trim_) batch = without_mark(batch, first);
    while (!batch.empty()) {
      const size_t end = std::min(batch.find(separator_), batch.size());
      std::string_view text = batch.substr(0, end);
      if (trim_) text = trimmed(text, kBreaks);
      if (!trim_ || !text.empty()) take(text);
      batch.remove_prefix(std::min(end + separator_.size(), batch.size()));
    }
  }
  bool lines() const override { return separator_ == "\n"; }

 private:
  std::string separator_;
  bool trim_;
  size_t unended_ = 0;  // bytes that whole() has seen behind the last record's end
};

// Texts that one or more lines of blanks end.
class Paragraphs final : public Records {
 public:
  size_t whole(std::string_view data, size_t seen) override {
    size_t end = data.rfind('\n');
    while (end != std::string_view::npos && end >= seen) {
      const size_t before = end == 0 ? std::string_view::npos : data.rfind('\n', end - 1);
      if (before == std::string_view::npos) return 0;
      if (data.substr(before + 1, end - before - 1).find_first_not_of(kBlanks) == std::string_view::npos) return end + 1;
      end = before;
    }
    return 0;
  }
  void each(std::string_view batch, bool first, const Take& take) const override {
    batch = without_mark(batch, first);
    const char* begin = nullptr;  // of the text under way
    const char* end = nullptr;
    while (!batch.empty()) {
      const size_t length = std::min(batch.find('\n'), batch.size());
      const std::string_view line = batch.substr(0, length);
      if (line.find_first_not_of(kBlanks) != std::string_view::npos) {
        if (begin == nullptr) begin = line.data();
        end = line.data() + line.size();
      } else if (begin != nullptr) {
        take(trimmed({begin, static_cast<size_t>(end - begin)}, kBreaks));
        begin = nullptr;
      }
      batch.remove_prefix(std::min(length + 1, batch.size()));
    }
    if (begin != nullptr) take(trimmed({begin, static_cast<size_t>(end - begin)}, kBreaks));
  }
};

class WholeStream final : public Records {
 public:
  size_t whole(std::string_view /*data*/, size_t /*seen*/) override { return 0; }
  void each(std::string_view batch, bool first, const Take& take) const override {
    batch = without_mark(batch, first);
    if (!batch.empty()) take(batch);
  }
};

// How deep a byte of JSON is nested, and whether it is inside a string.
class Nesting {
 public:
  void step(char c) {
    if (in_string_) {
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else if (c == '"')
        in_string_ = false;
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      --depth_;
    }
  }
  int64_t depth() const { return depth_; }
  bool in_string() const { return in_string_; }

 private:
  int64_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

class JsonValues final : public Records {
 public:
  explicit JsonValues(bool array) : between_(array ? 1 : 0) {}

  size_t whole(std::string_view data, size_t seen) override {
    size_t end = 0;
    for (size_t i = seen; i < data.size(); ++i) {
      const char c = data[i];
      const int64_t before = nesting_.depth();
      nesting_.step(c);
      if (nesting_.in_string()) continue;
      const bool closes = nesting_.depth() < before && nesting_.depth() <= (between_ == 1 ? 0 : between_);
      const bool separates = nesting_.depth() == between_ && (c == ',' || (between_ == 0 && c == '\n'));
      if (closes || separates) end = i + 1;
    }
    return end;
  }
  void each(std::string_view batch, bool first, const Take& take) const override {
    batch = without_mark(batch, first);
    bool open = first && between_ == 1;  // the array's own bracket is to come
    while (true) {
      const size_t begin = batch.find_first_not_of(" \t\r\n,");
      if (begin == std::string_view::npos) return;
      batch.remove_prefix(begin);
      if (open && batch.front() == '[') {
        open = false;
        batch.remove_prefix(1);
        continue;
      }
      if (between_ == 1 && batch.front() == ']') {
        if (batch.find_first_not_of(" \t\r\n", 1) != std::string_view::npos) take(trimmed(batch, " \t\r\n"));  // no value: it is bad
        return;
      }
      const size_t length = value_length(batch);
      take(trimmed(batch.substr(0, length), " \t\r\n"));
      batch.remove_prefix(length);
    }
  }
  std::string unfinished() const override {
    if (nesting_.depth() <= 0 && !nesting_.in_string()) return {};
    return between_ == 1 ? "the JSON array does not end" : "the last JSON value does not end";
  }

 private:
  // Of the value that `text` begins with, up to the comma, the bracket or the newline behind it.
  size_t value_length(std::string_view text) const {
    Nesting nesting;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (!nesting.in_string() && nesting.depth() == 0 && i > 0) {
        const bool ends = c == ',' || c == ']' || c == '}' || (between_ == 0 && c == '\n');
        if (ends) return c == '}' ? i + 1 : i;
      }
      nesting.step(c);
      if (!nesting.in_string() && nesting.depth() <= 0 && (c == '}' || c == ']' || c == '"')) return i + 1;
    }
    return text.size();
  }

  int64_t between_;  // depth between values: 1 in an array
  Nesting nesting_;
};

}  // namespace

std::unique_ptr<Records> line_records() { return std::make_unique<Separated>("\n", /*trim=*/false); }

std::unique_ptr<Records> text_records(const std::string& separator) {
  if (separator.empty()) return std::make_unique<WholeStream>();
  if (separator == "blank_line") return std::make_unique<Paragraphs>();
  return std::make_unique<Separated>(separator == "line" ? "\n" : separator, /*trim=*/true);
}

std::unique_ptr<Records> json_records(bool array) { return std::make_unique<JsonValues>(array); }

}  // namespace hlat::reader
