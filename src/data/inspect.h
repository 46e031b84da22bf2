// A look at what a run would read: rows as text, and statistics that show bad data before it is trained on. Walks the first rows of all
// lanes in the order of training, on one thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace hlat {

struct SourceReport {
  std::string name;
  uint64_t documents = 0;  // begun
  uint64_t tokens = 0;
  double wanted = 0;              // share of the tokens that the weights ask for over these steps
  uint64_t fallback = 0;          // tokens that are unknown, or single bytes for lack of a better token
  double bytes_per_token = 0;     // of complete documents; NaN when there is no text to count
  std::vector<uint64_t> lengths;  // tokens of the documents that were read from start to end, sorted
  double mean_length() const;
  uint64_t percentile(double share) const;  // of lengths; 0 when there are none
};

struct DataReport {
  int64_t rows = 0, steps = 0;
  uint64_t tokens = 0;
  std::vector<SourceReport> sources;
  // Documents whose content came before: in the same row, the same step, or anywhere in what was walked.
  uint64_t documents = 0, repeats_in_row = 0, repeats_in_step = 0, repeats = 0;
  double seconds = 0;
};

struct ShownRow {
  struct Part {
    std::string source;
    uint64_t document = 0;
    int64_t tokens = 0;
    bool starts = false, ends = false;
    std::string text;
  };
  int64_t step = 0, lane = 0;
  std::vector<Part> parts;
};

// Walks whole steps until `tokens` tokens were read.
DataReport inspect_data(const Dataset& data, uint64_t tokens);
// Row `step` of the first `lanes` lanes.
std::vector<ShownRow> show_rows(const Dataset& data, int64_t step, int64_t lanes);

std::string report_text(const DataReport& report);
std::string rows_text(const std::vector<ShownRow>& rows);
nlohmann::ordered_json report_json(const DataReport& report);
nlohmann::ordered_json rows_json(const std::vector<ShownRow>& rows);

}  // namespace hlat
