// Where documents come from. A source is an array of documents, and a document a pure function of its index, so any lane can ask
// for any document at any time and a position in the data is just an index. A long document comes in pieces, so that nobody holds
// more of it than one. Places in a document are counted in bytes of its text, or four for a token of a document that is stored as tokens.
// Sources are shared by all threads; a reader is one thread's access, with its own caches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hlat {

// A document or a piece of one.
struct Document {
  std::vector<int32_t> tokens;     // the last piece ends with the end-of-document token
  std::vector<double> surprisals;  // nats, -log p(token | document so far); empty when the true source is unknown
};

// Where a document lies.
struct DocumentPlace {
  std::string file;
  uint64_t number = 0;  // in the file, from 0
};

class DocumentReader {
 public:
  static constexpr uint64_t kEnd = ~uint64_t{0};  // of a document

  virtual ~DocumentReader() = default;
  // The piece of the document that begins at `from`, 0 for the first, and ends at `to` at the latest. Returns where the next one begins,
  // 0 when the document ends with this. Without tokens only where the text up to `to` has none.
  virtual uint64_t read(uint64_t document, uint64_t from, uint64_t to, Document& out) = 0;
  // The last place at or before `near` where the document can be cut in two without changing a token; 0 where there is none.
  virtual uint64_t cut(uint64_t document, uint64_t near) = 0;
};

class DocumentSource {
 public:
  virtual ~DocumentSource() = default;

  virtual const std::string& name() const = 0;
  virtual uint64_t documents() const = 0;              // 0: endless; such a source is read in its own order
  virtual uint64_t hash(uint64_t document) const = 0;  // of its content: equal documents have equal hashes
  virtual uint64_t size(uint64_t document) const = 0;  // where it ends; 0 in an endless source
  virtual uint64_t bytes() const = 0;                  // the sizes of all documents together
  virtual std::unique_ptr<DocumentReader> reader() const = 0;
  // Nats per token of the distribution the documents are drawn from, where it is known: a floor for the loss of any model.
  virtual std::optional<double> entropy() const { return {}; }

  // What the source consists of: one fingerprint of the content for each of its files.
  virtual std::vector<uint64_t> identity() const = 0;
  virtual std::string part_name(size_t part) const = 0;  // the file, for messages
  virtual DocumentPlace place_of(uint64_t document) const { return {name(), document}; }
};

}  // namespace hlat
