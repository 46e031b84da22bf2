// Where a run's folder keeps what an earlier run, or an earlier attempt at the same steps, left there: previous_1, previous_2, ...
// One of these per start; its folder is made when something is first put into it. What is moved is moved with one rename.
#pragma once

#include <filesystem>

namespace hlat {

class PreviousRun {
 public:
  explicit PreviousRun(std::filesystem::path run_folder) : run_folder_(std::move(run_folder)) {}

  bool used() const { return !folder_.empty(); }
  const std::filesystem::path& folder();  // RUN/previous_N, made with the first call
  // Moves a file or folder: RUN/a/b becomes RUN/previous_N/a/b. One that lies outside of the run folder, perhaps on another file system,
  // goes to a previous_N next to it. Nothing happens when there is none.
  void take(const std::filesystem::path& path);
  void sync(const std::filesystem::path& copied);  // a file in folder(), and the names that lead to it, are on disk when this returns

 private:
  std::filesystem::path run_folder_, folder_;
};

// Of the folders that have nothing but records of steps that were done again, which every restart may add to, the latest `most` stay.
void prune_repeated(const std::filesystem::path& run_folder, size_t most);

}  // namespace hlat
