// How fast this machine reads, tokenizes and packs a config's data, with one thread and with more.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace hlat {

struct DataBench {
  // Rates of all threads together, bytes of text per second; 0 where there is no text.
  struct Line {
    int threads = 1;
    double read_bytes_per_s = 0;                                 // documents as text
    double tokenize_bytes_per_s = 0, tokenize_tokens_per_s = 0;  // read and tokenized
    double loader_tokens_per_s = 0;                              // rows as a step takes them
  };
  std::string data;
  std::vector<Line> lines;
};

// With 1, 2, 4, ... and `most` threads, about `seconds` for each figure.
DataBench bench_data(const Dataset& data, int most, double seconds);
std::string data_bench_text(const DataBench& bench);
nlohmann::ordered_json data_bench_json(const DataBench& bench);

}  // namespace hlat
