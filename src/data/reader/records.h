// How the bytes of a stream fall into records: lines, JSON values, or texts between separators. A stream is cut into batches of whole
// records by one thread, with whole(); many threads then take the records of their batches apart, with each().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hlat::reader {

class Records {
 public:
  virtual ~Records() = default;
  // Where the last whole record of `data` ends; 0 when none ends behind `seen`. The bytes before `seen` were looked at already.
  virtual size_t whole(std::string_view data, size_t seen) = 0;
  using Take = std::function<void(std::string_view)>;
  // Calls take(record) for the records of a batch. `first`: the batch begins the stream.
  virtual void each(std::string_view batch, bool first, const Take& take) const = 0;
  // What is wrong when the stream ends here; empty when nothing is.
  virtual std::string unfinished() const { return {}; }
  // Records end with a newline, so that one that is too long can be passed over.
  virtual bool lines() const { return false; }
};

std::unique_ptr<Records> line_records();
// Separator of the documents of a text file as the config has it: "line", "blank_line", or a text. Line breaks around a document are not
// part of it, and what is then empty is none. Empty: the whole stream is one document.
std::unique_ptr<Records> text_records(const std::string& separator);
// The elements of one JSON array, or JSON values one behind the other.
std::unique_ptr<Records> json_records(bool array);

}  // namespace hlat::reader
