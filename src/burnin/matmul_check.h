// Products with a known answer under load: every rank at the same time, on its GPU or on all its cores, each product held against the
// known bits. Speeds are taken under that load; where ranks compete for cores or a GPU, afterwards, in turns of one rank a host.
#pragma once

#include "burnin/check_run.h"
#include "burnin/verdict.h"

namespace hlat {

// What a rank measured.
struct MatmulMeasured {
  int64_t size = 0, products = 0, wrong = 0;
  std::string words;            // of the first wrong product, or of what failed
  std::vector<double> loaded;   // FLOP/s of each round, under load
  std::vector<double> in_turn;  // the same in turns
  std::string taken;            // from the machine meanwhile, by others
  // Rates that ranks are compared by: in turns where there are any. Under load the best of the second half counts, when all is warm.
  Speed speed() const;
};

// Findings on wrong and slow ranks.
std::vector<Finding> judge_matmul(const CheckRun& run, const std::vector<MatmulMeasured>& by_rank);

PartReport check_matmul(const CheckRun& run, double seconds);

}  // namespace hlat
