// Ways in which the files of checkpoints go wrong: what disks, copies and people do to bytes, files and folders, and an index that somebody
// edited and signed anew. Each works on a folder with the checkpoints step_2 and step_4 of one run, and is a function of its random
// numbers.
#pragma once

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace hlat::test {

struct Mutation {
  std::string name;
  // No checksum hides it, so what is left of the run must be found. Else it may be refused too: signed anew it is no longer damage, and
  // where both checkpoints are hurt there is nothing left.
  bool previous_is_taken = true;
  std::function<void(const std::filesystem::path& parent, std::mt19937_64& random)> apply;
};

const std::vector<Mutation>& checkpoint_mutations();

}  // namespace hlat::test
