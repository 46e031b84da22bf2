// Numbers of a task: what each example gives to a metric, how those become one number with its standard error, and how numbers of
// subtasks become the task's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hlat {

// How the values of all examples become one number.
enum class Aggregation : uint8_t {
  mean,                 // of the values
  perplexity,           // exp(-mean); values are log-likelihoods
  weighted_perplexity,  // exp(-sum of values / sum of weights); values are log-likelihoods, weights words or bytes
  bits_per_weight,      // -log2 likelihood / sum of weights
};

struct Metric {
  std::string name;             // "acc"
  std::string filter = "none";  // the answer filter that it judges by: "strict-match"
  Aggregation aggregation = Aggregation::mean;
  bool higher_is_better = true;
  std::string key() const { return name + "," + filter; }  // "exact_match,strict-match", as the harness's results have it
};

// What one example gives to one metric.
struct MetricValue {
  double value = 0;
  double weight = 1;
};

struct Estimate {
  double value = 0;
  double error = 0;  // standard error; of a perplexity to first order. NaN where there is only one example
  int64_t count = 0;
};

// `values` are those of one metric, of all examples; not empty.
Estimate aggregate(Aggregation aggregation, std::span<const MetricValue> values);

// One number of several subtasks: the mean weighted by size, and the error from the pooled variance of their examples. Not empty.
Estimate pooled(std::span<const Estimate> subtasks);

// 1 - C(n-c, k) / C(n, k): the chance that one of k samples passes, drawn from n of which c passed; k <= n.
double pass_at_k(int64_t n, int64_t c, int64_t k);

}  // namespace hlat
