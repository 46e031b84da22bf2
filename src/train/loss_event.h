// What is told of a step whose loss is off, or that was skipped: one event with the documents of its batch, gathered from the ranks that
// read them.
#pragma once

#include <nlohmann/json_fwd.hpp>
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
  std::string problem = {};  // why documents are missing; empty: none are
};

const char* kind_of(const LossEvent& event);    // in events.jsonl: "skip", else "spike" or "non_finite"
std::string reason_of(const LossEvent& event);  // in words
// Fields of the event in events.jsonl, besides those of all events.
nlohmann::ordered_json fields_of(const LossEvent& event);

// The documents of one rank with those of the others along dp, in their order. Collective over the group; the rest of the told ones, over
// `most`, stays at home.
BatchDocuments gather_documents(Comm& dp, const BatchDocuments& own, size_t most = kToldDocuments);

}  // namespace hlat
