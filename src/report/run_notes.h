// What events.jsonl tells of losses and alarms, with the fields that only these have: steps whose loss was off and the documents of their
// batches (train/loss_event.h), and alarms with their evidence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hlat {

struct NotedDocument {
  std::string source, file;
  int64_t row = 0, document = 0, byte = 0, token = 0, tokens = 0;
};

struct LossNote {
  double time = 0;  // seconds since 1970
  int64_t step = 0;
  std::string kind, cause, action, reason;     // kind: spike, skip, non_finite
  double loss = 0, grad_norm = 0, median = 0;  // NaN: not known
  int64_t document_count = 0;
  std::vector<NotedDocument> documents = {};  // the first of them

  // Not a batch that somebody asked to leave out.
  bool is_of_loss() const { return kind != "skip" || cause == "spike" || cause == "non_finite"; }
};

struct AlarmNote {
  double time = 0;
  int64_t step = 0;
  std::string rule, evidence, advice;
  double value = 0, limit = 0;  // NaN: not told
};

struct RunNotes {
  std::vector<LossNote> losses;
  std::vector<AlarmNote> alarms;
};

// Those from this time on, seconds since 1970; lines that are damaged are left out.
RunNotes read_notes(const std::filesystem::path& folder, double since);

}  // namespace hlat
