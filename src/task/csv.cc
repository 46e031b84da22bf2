#include "task/csv.h"

namespace hlat {
namespace {

class Reader {
 public:
  Reader(std::string_view text, char separator) : text_(text), separator_(separator) {}

  std::vector<CsvRow> run() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      if (end_of_line()) continue;
      rows.push_back({.line = line_});
      row(rows.back());
    }
    return rows;
  }

 private:
  // Takes a line break, where one is next.
  bool end_of_line() {
    if (text_.substr(at_).starts_with("\r\n")) ++at_;
    if (at_ == text_.size() || text_[at_] != '\n') return false;
    ++at_;
    ++line_;
    return true;
  }

  void row(CsvRow& out) {
    for (;;) {
      out.fields.emplace_back();
      if (at_ < text_.size() && text_[at_] == '"')
        quoted(out);
      else
        plain(out.fields.back());
      if (at_ == text_.size() || end_of_line()) return;
      ++at_;  // the separator
    }
  }

  void plain(std::string& field) {
    while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n' && !text_.substr(at_).starts_with("\r\n"))
      field += text_[at_++];
  }

  void quoted(CsvRow& out) {
    std::string& field = out.fields.back();
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        field += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        field += '"';
        ++at_;
      } else {
        ++at_;
        plain(field);  // what follows the closing quote belongs to the field, as Python's csv has it
        return;
      }
    }
    out.problem = "a quote that is not closed";
  }

  std::string_view text_;
  char separator_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace

std::vector<CsvRow> read_csv(std::string_view text, char separator) { return Reader(text, separator).run(); }

}  // namespace hlat
