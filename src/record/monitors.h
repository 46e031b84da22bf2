// What a step measures of itself every monitor.every steps, besides its loss and norms: the object "monitors" of a line of metrics.jsonl.
// The same on every layout, up to rounding. A list by part of the model has the embedding first, then the blocks, then the head. A step
// that is skipped has the shares of FP8 alone.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hlat {

struct Monitors {
  // By part of the model.
  std::vector<double> grad_norm;     // of this step, before clipping
  std::vector<double> weight_norm;   // after the update
  std::vector<double> update_ratio;  // norm of the weights' change over their norm
  std::vector<double> unchanged;     // share of the weights that the update left as they were, lost to rounding
  // By block, and of activations also what the head gets.
  std::vector<double> max_activation;  // largest absolute value of the residual stream that a block gets
  std::vector<double> max_lse;         // largest log-sum-exp of scaled attention scores: no score of these rows exceeds it
  std::vector<double> max_logit;       // largest scaled attention score of the probe row, exactly; empty: not probed in this step
  // Of all moments.
  double moment1_max = 0;                   // largest absolute value
  double moment2_min = 0, moment2_max = 0;  // of those that are not 0
  std::optional<double> update_error = {};  // share by which updates of sampled elements are not those of AdamW, beyond rounding: 0
  // Of what FP8 stored since the step before that told it, by operand of linear layers: inputs, gradients of outputs, weights. Empty
  // without FP8.
  std::vector<double> fp8_saturated;  // share of values beyond the largest one of the type
  std::vector<double> fp8_lost;       // share of values that are not 0 and became 0
  // Of the step's loss.
  std::vector<double> position_loss;                        // by part of the sequence
  std::vector<std::pair<std::string, double>> source_loss;  // by source of the data, where its rows are known
  // Of the step's data: of all rows, and from a sample of them.
  double repeated_rows = 0;  // share of rows that are elsewhere in the batch too, or were in the one measured before
  double repetition = 0;     // share of tokens that continue a repetition of an earlier part of the same row
  double copy_baseline = 0;  // nats per token that copying from the same row, and the frequencies of tokens, leave
  // Of the probe, where it is due.
  std::optional<double> probe_loss = {};
  std::optional<double> leak = {};   // largest change of an earlier token's loss when later tokens of the probe change: 0
  std::optional<double> drift = {};  // largest difference of weights that ranks hold alike; several ranks, where it is measured
};

}  // namespace hlat
