// One file of documents with random access: document i is a pure function of the file. Safe to read from many threads.
// Opening makes or finds the document index (reader/index.h); files larger than memory are fine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hlat {

// What a reader found wrong; kept up to a bound, counted without one.
struct BadDocument {
  uint64_t line = 0;  // from 1, or row of the table; 0: the file as a whole
  std::string reason;
};

struct FileReport {
  std::string path;
  uint64_t documents = 0;  // good ones
  uint64_t bytes = 0;      // of their text, or 4 per token
  uint64_t bad = 0;
  std::vector<BadDocument> examples;       // the first few of the bad
  uint64_t empty = 0;                      // documents without text
  std::optional<BadDocument> broken = {};  // where and why the file cannot be read to its end, and how much is lost
};

class DocumentFile {
 public:
  virtual ~DocumentFile() = default;

  virtual const FileReport& report() const = 0;
  uint64_t documents() const { return report().documents; }
  // A hash of the document's content, from the index: equal documents of any file have equal hashes.
  virtual uint64_t hash(uint64_t document) const = 0;
  virtual uint64_t length(uint64_t document) const = 0;  // bytes of text, or tokens
  // Of all documents in order: differs when a document changed, and stays when the file is copied or touched.
  virtual uint64_t fingerprint() const = 0;

  // True: the documents are token ids already and `tokens` reads them; false: they are text and `text` reads them.
  // An Error that names the file when it changed since it was opened or can no longer be read.
  virtual bool tokenized() const = 0;
  virtual void text(uint64_t document, std::string& out) const = 0;
  virtual void tokens(uint64_t document, std::vector<int32_t>& out) const = 0;
  // A part of a text that may be larger than memory: about `bytes` from byte `begin` on, ending between two characters; empty
  // at the end. The next part begins at begin + out.size().
  virtual void text_part(uint64_t document, uint64_t begin, uint64_t bytes, std::string& out) const = 0;
  // Tokens [begin, begin + count) of a document; fewer where it ends before.
  virtual void tokens_part(uint64_t document, uint64_t begin, uint64_t count, std::vector<int32_t>& out) const;
};

// What opening files took.
struct DataWork {
  uint64_t files_opened = 0;
  uint64_t files_scanned = 0;     // read from begin to end for a new index
  uint64_t indices_hashed = 0;    // read from begin to end
  uint64_t documents_walked = 0;  // whose hashes were looked at, one after the other
};

namespace reader {
class OpenFiles;
}

struct ReaderOptions {
  std::string field = "text";  // of JSON objects and of table columns
  std::string cache_dir = {};  // where indices go; empty: next to the data, else a folder of the user's cache
  double bad_share = 0.01;     // more bad documents than this share is an Error (check_report)
  int threads = 1;             // of the scan
  std::string separator = {};  // of the documents of a text file (reader/records.h); empty: a file is one document
  bool allow_broken = false;   // take what can be read of a file that breaks off; false: that is an Error
  // Fingerprint of the file as another process of this machine found it: the index that has it is taken without hashing it once more, and
  // there is an Error when there is none.
  std::optional<uint64_t> verified = {};
  DataWork* work = nullptr;                       // counts here, where asked for
  std::shared_ptr<reader::OpenFiles> files = {};  // whose descriptors are shared; null: the file has its own
  std::function<void(uint64_t)> scanned = {};     // told about bytes of the file that were scanned, from any thread
};

// By the end of its name, as known_formats() lists them. An Error for anything else, with the list.
std::unique_ptr<DocumentFile> open_documents(const std::string& path, const ReaderOptions& options);

// The bad documents of a file, one "FILE:LINE: reason" a line, after a line that counts them, and where it is broken.
std::string describe_bad(const FileReport& report);
// An Error with that text when the file is broken, unless that is allowed, and when there are more bad documents than the share of
// all. Unless the share is 0 these are no Error: an empty file, a few bad documents of a hundred or more or of a broken file, and with
// allow_broken a file without a good one.
void check_report(const FileReport& report, const ReaderOptions& options);

}  // namespace hlat
