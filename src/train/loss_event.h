// What is told of a step whose loss is off, or that was skipped: one event with the documents of its batch, gathered from the ranks that
// read them. An alarm is an event of its own, with its evidence and advice.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "data/batch_documents.h"
#include "parallel/mesh.h"
#include "train/loss_policy.h"

namespace hlat {

struct LossEvent {
  int64_t step = 0;
  LossVerdict verdict;
  int64_t rows = 0;          // of the batch
  BatchDocuments documents;  // of all ranks, on rank 0
  std::optional<Alarm> alarm = {};
  std::string problem = {};  // why documents are missing; empty: none are
};

const char* kind_of(const LossEvent& event);    // in events.jsonl: "skip", else "spike", "non_finite" or "alarm"
std::string reason_of(const LossEvent& event);  // in words
// Fields of the event in events.jsonl, besides those of all events.
nlohmann::ordered_json fields_of(const LossEvent& event);

// The first documents of a batch in words: "stories.jsonl document 12 (row 3)"; empty: none are known.
std::string first_documents(const BatchDocuments& documents, size_t most = 3);

// The documents of one rank with those of the others along dp, in their order. Collective over the group; the rest of the told ones, over
// `most`, stays at home.
BatchDocuments gather_documents(Comm& dp, const BatchDocuments& own, size_t most = kToldDocuments);

}  // namespace hlat
