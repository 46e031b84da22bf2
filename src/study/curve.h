// The curves of a run as its folder has them, and what a study tells about one. All figures are functions of a list of numbers, so that
// they can be held against curves that are made by hand.
//
//   final value   mean of the last n values, n = 5 % of them, at least 20 and at most 100, but never more than a fifth of them: of a short
//                 run more would be of its beginning
//   noise         standard deviation around a smooth curve, over the last half: of value i minus the line fitted by least squares to the
//                 values i-h .. i+h, h = 25, divided by sqrt(1 - 1/(2h+1)), the share of independent noise that such a residual keeps.
//                 Less than 100 values: h is an eighth of them, at least 2
//   growth        of ln(value) over the last half, cut into 10 equal parts: slope of the line fitted to the medians of the parts, in units
//                 of 1000 steps, not told of less than 300 values, which that would extrapolate; and the ratio of the median of the last
//                 tenth of the run to that of its middle tenth (45 to 55 %)
//   divergence    the first step whose loss or gradient norm is not finite, or where the rise that leads into it begins, by the same 0.5;
//                 or the first step of a stretch of at least 50 steps and 5 % of the run on which the smooth loss (median of the values
//                 i-16 .. i+16) is more than 0.5 above the least that it was before. A spike of up to 16 steps does not move the median,
//                 and a bump that is shorter than the stretch is none
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace hlat {

size_t final_count(size_t values);  // n
double final_value(std::span<const double> values);
double noise_around_curve(std::span<const double> values);  // NaN: less than 20 values
struct Growth {
  double slope = 0;  // of the logarithm, in 1000 steps
  double ratio = 0;
};
Growth growth_of(std::span<const double> values);  // NaN: less than 20 values, for the slope less than 300
// Place among `losses` at which the run diverged. Both lists are of the same steps.
std::optional<size_t> divergence(std::span<const double> losses, std::span<const double> norms);

struct RunCurve {
  // By step that was not skipped, in order; a value that is not finite is NaN.
  std::vector<int64_t> step, tokens;
  std::vector<double> loss, grad_norm;
  std::vector<double> tokens_per_s, step_s, comm_s, comm_wait_s;
  // Where they were measured.
  std::vector<double> drift, unchanged;  // the latter as the mean over the parts of the model
  std::vector<int64_t> unchanged_step;
  std::optional<double> val_loss = {};  // the latest
};

// Of metrics.jsonl (record/run_curves.h), the steps that changed the weights: of one that was skipped, unseen or for its loss, the loss and
// norm say nothing of the run. No file: an empty curve.
RunCurve read_curve(const std::filesystem::path& metrics);

}  // namespace hlat
