// Runs the commands of docs/tutorial.md as a reader would, one block after the other in an empty folder, and looks at what is left there.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

// The blocks that the page marks as commands.
std::vector<std::string> command_blocks(const std::string& page) {
  const std::string begin = "```sh\n", end = "```\n";
  std::vector<std::string> blocks;
  for (size_t at = 0; (at = page.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    const size_t stop = page.find(end, at);
    blocks.push_back(page.substr(at, stop - at));
    at = stop;
  }
  return blocks;
}

nlohmann::json last_line(const std::string& path) {
  std::ifstream in(path);
  std::string last;
  for (std::string line; std::getline(in, line);) last = line;
  return nlohmann::json::parse(last);
}

TEST(Tutorial, EveryCommandOfThePageWorks) {
  const TempDir bin, dir;
  fs::create_symlink(hlat_binary(), bin.path("hlat"));
  const std::vector<std::string> blocks = command_blocks(slurp(source_path("docs/tutorial.md")));
  ASSERT_GE(blocks.size(), 8u);
  std::string output;
  for (const std::string& block : blocks) {
    const std::string script = bin.write("block.sh", "set -e\nset -o pipefail\nexport PATH=" + bin.path() + ":$PATH\n" + block);
    const int status = std::system(("cd " + dir.path() + " && bash " + script + " > out.txt 2>&1 < /dev/null").c_str());
    const std::string text = slurp(dir.path("out.txt"));
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << block << "\n" << text;
    output += text;
  }
  for (const char* expected : {"here it is optim.lr", "exit code 2", "statistics of all 196 steps", "the model writes", "held out"})
    EXPECT_NE(output.find(expected), std::string::npos) << expected << "\n" << output;
  const nlohmann::json first = last_line(dir.path("runs/first/metrics.jsonl"));
  EXPECT_EQ(first["step"], 196) << "200000 tokens in steps of 16 x 64";
  EXPECT_LT(first["val_loss"], 2.0) << "the page promises it";
  EXPECT_EQ(last_line(dir.path("runs/again/metrics.jsonl"))["step"], 30);
}

}  // namespace
}  // namespace hlat::test
