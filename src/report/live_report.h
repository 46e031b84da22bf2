// What hlat report --serve answers: the page, and its data for as long as the page asks for it. The runs are looked up and read again when
// something asks and they have changed; folders of runs that begin later are found.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/run_overview.h"
#include "report/serve.h"

namespace hlat {

class LiveReport {
 public:
  LiveReport(std::vector<std::string> runs, std::string version, double refresh_s)
      : runs_(std::move(runs)), version_(std::move(version)), refresh_s_(refresh_s) {}

  // path: "/", or "/data.json?since=STATE", which has no content where the data still have that state. UsageError, FaultError: the runs
  // cannot be read now.
  Served answer(const std::string& path);

 private:
  struct Known {
    std::string files;
    RunState state = RunState::running;
  };
  std::string state_of(const std::vector<std::filesystem::path>& folders);
  void renew();

  std::vector<std::string> runs_;  // as they were given
  std::string version_;
  double refresh_s_;
  std::map<std::string, Known> known_;  // by folder
  std::string state_;                   // of data_
  nlohmann::ordered_json data_;
};

}  // namespace hlat
