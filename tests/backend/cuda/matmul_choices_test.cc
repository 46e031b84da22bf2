// The file of matmul choices: found again, first one decides, broken and foreign content does no harm. Needs no GPU.
#include "backend/cuda/matmul/matmul_choices.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"

namespace hlat {
namespace {

MatmulChoice choice(uint64_t seed) {
  MatmulChoice c;
  for (size_t i = 0; i < c.algo.size(); ++i) c.algo[i] = seed + i;
  c.workspace = 1024 * seed;
  c.microseconds = 12.5;
  return c;
}

class MatmulChoicesTest : public testing::Test {
 protected:
  std::string dir() const { return temp_.path("cache"); }
  std::string file() const { return dir() + "/matmul_choices.txt"; }

 private:
  test::TempDir temp_;
};

TEST_F(MatmulChoicesTest, FindsWhatAnotherObjectStored) {
  MatmulChoices(dir()).add("gpu|lib|4x4x4 nn", choice(7), false);
  const MatmulChoices again(dir());
  const auto found = again.find("gpu|lib|4x4x4 nn");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->algo, choice(7).algo);
  EXPECT_EQ(found->workspace, choice(7).workspace);
  EXPECT_FALSE(again.find("another gpu|lib|4x4x4 nn"));
}

TEST_F(MatmulChoicesTest, TheFirstDecidesUnlessReplaced) {
  MatmulChoices first(dir()), second(dir());
  first.add("k", choice(1), false);
  EXPECT_EQ(second.add("k", choice(2), false).algo, choice(1).algo);
  EXPECT_EQ(second.add("k", choice(3), true).algo, choice(3).algo);
  EXPECT_EQ(MatmulChoices(dir()).find("k")->algo, choice(3).algo);
}

TEST_F(MatmulChoicesTest, BrokenLinesAreDroppedAndTheRestKept) {
  MatmulChoices(dir()).add("good", choice(1), false);
  std::string text;
  {
    std::ifstream in(file());
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  const std::string line = text.substr(text.find("good"));
  std::string altered = line;
  altered.replace(0, 4, "evil");
  std::ofstream(file(), std::ios::app) << altered << "half a line|00\n||||\n" << line.substr(0, line.size() / 2);
  MatmulChoices read(dir());
  EXPECT_TRUE(read.find("good"));
  EXPECT_FALSE(read.find("evil"));
  read.add("more", choice(2), false);
  EXPECT_TRUE(MatmulChoices(dir()).find("good"));
  EXPECT_TRUE(MatmulChoices(dir()).find("more"));
}

TEST(MatmulAlgorithmText, IsReadBackAndNothingElseIs) {
  const std::string text = algo_text(choice(7));
  EXPECT_EQ(text.size(), 128u);
  EXPECT_EQ(parse_algo(text)->algo, choice(7).algo);
  std::string signed_word = text, blank = text, letter = text;
  signed_word[0] = '-';
  blank[16] = ' ';
  letter[127] = 'g';
  for (const std::string& wrong : {std::string(), text + "0", text.substr(1), signed_word, blank, letter})
    EXPECT_FALSE(parse_algo(wrong)) << wrong;
}

TEST_F(MatmulChoicesTest, AForeignFileIsIgnored) {
  std::filesystem::create_directories(dir());
  std::ofstream(file()) << "something else\nk|0|0|0|0\n";
  MatmulChoices choices(dir());
  EXPECT_FALSE(choices.find("k"));
  choices.add("k", choice(5), false);
  EXPECT_TRUE(MatmulChoices(dir()).find("k"));
}

TEST_F(MatmulChoicesTest, AFolderThatCannotBeWrittenIsAProblemNotAnError) {
  std::ofstream(dir()) << "a file where the folder should be";
  MatmulChoices choices(dir());
  EXPECT_EQ(choices.add("k", choice(1), false).algo, choice(1).algo);
  EXPECT_FALSE(choices.problem().empty());
  EXPECT_TRUE(choices.find("k"));
}

}  // namespace
}  // namespace hlat
