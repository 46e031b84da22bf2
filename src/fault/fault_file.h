// RUN/faults.jsonl: every planted fault that came about, written by its rank before it does, so that a restart does not meet it again. One
// object for each: the fault as FaultSpec::text has it, rank, step, attempt, host and time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace hlat::fault {

struct FiredFault {
  std::string fault;
  bool random = false;  // drawn; not one of fault.inject
  int rank = 0;
  int64_t step = 0;  // 0: before the first
  int attempt = 1;
};

class FaultFile {
 public:
  // fresh: the run begins anew, and what the file has is not of it.
  FaultFile(std::filesystem::path run_folder, bool fresh);

  int64_t fired(const std::string& fault) const;  // how often, when this was made
  void add(const FiredFault& fault) const;        // on disk when it returns

 private:
  std::filesystem::path folder_;
  std::map<std::string, int64_t> fired_;
};

}  // namespace hlat::fault
