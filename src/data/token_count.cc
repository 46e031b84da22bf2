#include "data/token_count.h"

#include <atomic>
#include <exception>
#include <thread>

#include "base/error.h"

namespace hlat {
namespace {

uint64_t tokens_of(DocumentReader& reader, uint64_t document) {
  uint64_t tokens = 0, from = 0;
  do {
    Document piece;
    from = reader.read(document, from, DocumentReader::kEnd, piece);
    tokens += piece.tokens.size();
  } while (from != 0);
  return tokens;
}

}  // namespace

uint64_t count_tokens(const Mixture& mixture, size_t source, int threads, uint64_t enough) {
  const DocumentSource& documents = *mixture.sources[source];
  HLAT_CHECK(documents.documents() > 0 && threads > 0, "source {}, {} threads", mixture.names[source], threads);
  std::atomic<uint64_t> next = 0, tokens = 0;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(threads));
  const auto work = [&](std::exception_ptr& error) {
    try {
      const std::unique_ptr<DocumentReader> reader = documents.reader();
      for (uint64_t d = 0; tokens < enough && (d = next++) < documents.documents();)
        if (mixture.has(source, d)) tokens += tokens_of(*reader, d);
    } catch (...) {
      error = std::current_exception();
      next = documents.documents();
    }
  };
  std::vector<std::jthread> others;
  for (size_t t = 1; t < errors.size(); ++t) others.emplace_back(work, std::ref(errors[t]));
  work(errors[0]);
  others.clear();  // when they have ended
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
  return tokens;
}

}  // namespace hlat
