// Whether two models differ by more than chance.
#pragma once

#include <cstdint>
#include <span>

namespace hlat {

// Two-sided probability that a standard normal number is as far from 0 as z.
double normal_p(double z);

// Exact McNemar test, the sign test of pairs that differ: the chance, where both are equally good, that of all pairs in which just one is
// right a share as uneven goes to one of them. Two-sided; 1 where no pair differs.
double mcnemar_p(int64_t only_first, int64_t only_second);

// Of the mean of paired differences, as of a normal number; not known (NaN) with fewer than two. 1 where all are 0.
double paired_p(std::span<const double> differences);

// Of two means with standard errors, as of independent measurements; NaN where one is not known.
double unpaired_p(double difference, double error_first, double error_second);

}  // namespace hlat
