// hlat data tokenize: ids as the library gives them, back again, and what bad input says.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/run_binary.h"
#include "support/temp_dir.h"
#include "support/tokenizer_golden.h"

namespace hlat::test {
namespace {

RunResult tokenize(const std::string& tokenizer, std::vector<std::string> args) {
  args.insert(args.begin(), {"data", "tokenize", "--tokenizer", tokenizer_fixture(tokenizer)});
  return run_binary(args);
}

TEST(CliDataTokenize, PlainTextIsOneDocumentAndComesBack) {
  const Golden golden = load_golden("golden.jsonl");
  const TempDir dir;
  for (const GoldenRow& row : golden.rows) {
    // The small file of ranks is of no published family: the program refuses it.
    if (!row.patch.is_null() || row.file == "added.json" || row.file == "llama3.model") continue;
    const size_t i = 28;  // code with line breaks
    const RunResult r = tokenize(row.file, {dir.write("text", golden.texts[row.texts[i]])});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.out, fmt::format("{}\n", fmt::join(row.ids[i], " "))) << row.file;
    const RunResult back = tokenize(row.file, {"--decode", dir.write("ids", r.out)});
    ASSERT_EQ(back.exit_code, 0) << back.err;
    EXPECT_EQ(back.out, row.decoded[i]) << row.file;
  }
}

TEST(CliDataTokenize, JsonLinesAreManyDocumentsInOrder) {
  const Golden golden = load_golden("golden.jsonl");
  const GoldenRow& row = golden.rows.front();
  std::string lines;
  std::string ids;
  for (int repeat = 0; repeat < 20; ++repeat) {
    for (size_t i = 0; i < row.ids.size(); ++i) {
      lines += nlohmann::json{{"id", i}, {"body", golden.texts[row.texts[i]]}}.dump() + "\n";
      ids += fmt::format("{}\n", fmt::join(row.ids[i], " "));
    }
  }
  const TempDir dir;
  const std::string path = dir.write("docs.jsonl", lines);
  for (const char* threads : {"1", "3"}) {
    const RunResult r = tokenize(row.file, {"--jsonl", "body", "--threads", threads, path});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.out, ids) << threads;
  }
  const RunResult back = tokenize(row.file, {"--decode", "--jsonl", "text", dir.write("ids", ids)});
  ASSERT_EQ(back.exit_code, 0) << back.err;
  std::istringstream objects(back.out);
  std::string line;
  for (size_t i = 0; i < row.ids.size(); ++i) {
    ASSERT_TRUE(std::getline(objects, line));
    EXPECT_EQ(nlohmann::json::parse(line)["text"], golden.texts[row.texts[i]]);
  }
}

TEST(CliDataTokenize, StandardInputIsTheDefault) {
  const RunResult r = tokenize("gpt2.json", {});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, "\n");  // standard input is empty: a document without ids
}

TEST(CliDataTokenize, BadInputEndsWithTwoAndSaysWhere) {
  const TempDir dir;
  nlohmann::json json = nlohmann::json::parse(slurp(tokenizer_fixture("gpt2.json")));
  const auto with = [&](const char* section, nlohmann::json value) {
    nlohmann::json j = json;
    j[section] = std::move(value);
    return dir.write("tokenizer.json", j.dump());
  };
  const std::string text = dir.write("text", "x");
  const std::string gpt2 = tokenizer_fixture("gpt2.json");
  struct Case {
    std::vector<std::string> args;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{"nowhere.json", text}, "nowhere.json: cannot be read: No such file"},
      {{dir.path(), text}, "a folder"},
      {{dir.write("empty.json", ""), text}, "the file is empty"},
      {{dir.write("broken.json", "{\"model\": "), text}, "not JSON"},
      {{dir.write("list.json", "[1]"), text}, "neither JSON, nor tiktoken's ranks, nor a SentencePiece model"},
      {{with("model", {{"type", "WordPiece"}}), text}, "model: type 'WordPiece' is not supported; BPE and Unigram are"},
      {{gpt2, "missing.txt"}, "missing.txt: cannot be read"},
      {{gpt2, "--jsonl", "text", dir.write("a.jsonl", "{\"text\":\"a\"}\n{\"txt\":\"b\"}\n")}, "a.jsonl:2: no text in the field 'text'"},
      {{gpt2, "--jsonl", "text", dir.write("b.jsonl", "\n{\"text\":\"a\"\n")}, "b.jsonl:2: not JSON"},
      {{gpt2, "--decode", dir.write("c", "1 2\n3 100000\n")}, "c:2: the id 100000 is not in the vocabulary, which has 0 to"},
      {{gpt2, "--decode", dir.write("d", "1 -2\n")}, "d:1: the id -2 is not in the vocabulary"},
      {{gpt2, "--decode", dir.write("e", "1 2x\n")}, "e:1: not a list of ids"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> args = {"data", "tokenize", "--tokenizer"};
    args.insert(args.end(), c.args.begin(), c.args.end());
    const RunResult r = run_binary(args, dir.path());
    EXPECT_EQ(r.exit_code, 2) << c.says;
    EXPECT_NE(r.err.find(c.says), std::string::npos) << r.err;
  }
}

}  // namespace
}  // namespace hlat::test
