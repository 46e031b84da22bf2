// Where documents come from. A source is an array of documents, and a document a pure function of its index, so any lane can ask
// for any document at any time and a position in the data is just an index. A long document comes in pieces, so that nobody holds
// more of it than one. Sources are shared by all threads; a reader is one thread's access, with its own caches.
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

class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  // The piece of the document that begins at `from`, 0 for the first. Returns where the next one begins, 0 when this is the last.
  virtual uint64_t read(uint64_t document, uint64_t from, Document& out) = 0;
};

class DocumentSource {
 public:
  virtual ~DocumentSource() = default;

  virtual const std::string& name() const = 0;
  virtual uint64_t documents() const = 0;              // 0: endless; such a source is read in its own order
  virtual uint64_t hash(uint64_t document) const = 0;  // of its content: equal documents have equal hashes
  virtual uint64_t typical_length() const = 0;         // tokens of a document, roughly; at least 1
  virtual std::unique_ptr<DocumentReader> reader() const = 0;
  // Nats per token of the distribution the documents are drawn from, where it is known: a floor for the loss of any model.
  virtual std::optional<double> entropy() const { return {}; }

  // What the source consists of: one fingerprint of the content for each of its files.
  virtual std::vector<uint64_t> identity() const = 0;
  virtual std::string part_name(size_t part) const = 0;  // the file, for messages
};

}  // namespace hlat
