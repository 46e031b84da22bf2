#include "burnin/planted.h"

#include <sstream>
#include <string>

namespace hlat {

bool planted(const Config& config, std::string_view kind, int rank) {
  std::istringstream faults(config.fault.inject);
  const std::string who = "rank=" + std::to_string(rank);
  for (std::string fault; std::getline(faults, fault, ';');) {
    std::istringstream words(fault);
    std::string word;
    if (!(words >> word) || word != kind) continue;
    while (words >> word)
      if (word == who) return true;
  }
  return false;
}

}  // namespace hlat
