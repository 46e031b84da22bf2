// Records of evaluation data in all formats, and broken ones named by file and line.
#include "task/read_records.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/documents.h"
#include "support/message_of.h"
#include "support/temp_dir.h"
#include "task/csv.h"

namespace hlat {
namespace {

using test::TempDir;

std::vector<TaskRecord> read(const DataSource& source, const std::string& path, const std::string& labels = "") {
  Problems problems;
  auto out = read_records(source, path, labels, problems);
  problems.refuse("broken");
  return out;
}

std::string problems_of(const DataSource& source, const std::string& path, const std::string& labels = "") {
  return message_of([&] { read(source, path, labels); });
}

std::string fields(const std::vector<TaskRecord>& records) {
  std::string out;
  for (const TaskRecord& r : records) out += r.fields.dump() + "\n";
  return out;
}

std::shared_ptr<const Pattern> pattern(const std::string& text) { return std::make_shared<const Pattern>(text); }

TEST(TaskRecords, JsonLinesPlainAndCompressed) {
  const TempDir dir;
  const std::string text = "{\"a\": 1}\r\n\n{\"b\": \"é\"}";
  const std::string wanted = "{\"a\":1}\n{\"b\":\"é\"}\n";
  EXPECT_EQ(fields(read({}, dir.write("x.jsonl", text))), wanted);
  EXPECT_EQ(fields(read({}, dir.write("x.jsonl.gz", test::gzip(text)))), wanted);
  EXPECT_EQ(fields(read({}, dir.write("x.jsonl.zst", test::zstd(text)))), wanted);
  const auto records = read({}, dir.path("x.jsonl"));
  EXPECT_EQ(records[1].id, 1);
  EXPECT_EQ(records[1].where, dir.path("x.jsonl") + ":3");
}

TEST(TaskRecords, JsonWithAPathToTheList) {
  const TempDir dir;
  DataSource source;
  EXPECT_EQ(fields(read(source, dir.write("a.json", R"([{"a": 1}])"))), "{\"a\":1}\n");
  source.list = {"data", "examples"};
  EXPECT_EQ(fields(read(source, dir.write("b.json", R"({"data": {"examples": [{"z": 1, "a": 2}]}})"))), "{\"z\":1,\"a\":2}\n")
      << "fields keep their order";
  EXPECT_NE(problems_of(source, dir.path("a.json")).find("a.json: no field 'data' that leads to the records"), std::string::npos);
}

TEST(TaskRecords, CsvWithAndWithoutALineOfNames) {
  const TempDir dir;
  DataSource source;
  EXPECT_EQ(fields(read(source, dir.write("a.csv", "\xef\xbb\xbfq,a\n\"x, \"\"y\"\"\nz\",1\r\n\n,2\n"))),
            "{\"q\":\"x, \\\"y\\\"\\nz\",\"a\":\"1\"}\n{\"q\":\"\",\"a\":\"2\"}\n");
  source.columns = {"q", "a"};
  source.separator = '\t';
  EXPECT_EQ(fields(read(source, dir.write("b.csv", "x,y\t1"))), "{\"q\":\"x,y\",\"a\":\"1\"}\n");
  EXPECT_EQ(read_csv("a\n\"b\nc\"\nd", ',').back().line, 4);
}

TEST(TaskRecords, TextByAPatternWithNamedGroups) {
  const TempDir dir;
  DataSource source;
  source.pattern = pattern(R"((?s)Q: (?<q>.*?)\nA: (?<a>.*?)(?=\n\nQ: |\s*\z))");
  const auto records = read(source, dir.write("a.txt", "head\n\nQ: one\nmore\nA: 1\n\nQ: two\nA: 2\n"));
  EXPECT_EQ(fields(records), "{\"q\":\"one\\nmore\",\"a\":\"1\"}\n{\"q\":\"two\",\"a\":\"2\"}\n");
  EXPECT_EQ(records[1].where, dir.path("a.txt") + ":7");
}

TEST(TaskRecords, TextByWhereRecordsStart) {
  const TempDir dir;
  DataSource source;
  source.record_start = pattern(R"((?m)^= .* =$)");
  EXPECT_EQ(fields(read(source, dir.write("a.txt", " \n= a =\nx\n \n= b =\ny\n"))),
            "{\"text\":\"= a =\\nx\\n \"}\n{\"text\":\"= b =\\ny\\n\"}\n");
  EXPECT_EQ(read(source, dir.write("b.txt", "x\n= a =\ny")).size(), 2u)
      << "what stands before the first start counts where it is not blank";
}

TEST(TaskRecords, LabelsAreJoinedLineByLine) {
  const TempDir dir;
  DataSource source;
  source.label_field = "label";
  const std::string data = dir.write("a.jsonl", "{\"a\":1}\n{\"a\":2}\n");
  EXPECT_EQ(fields(read(source, data, dir.write("l.lst", "0\n1\n"))), "{\"a\":1,\"label\":\"0\"}\n{\"a\":2,\"label\":\"1\"}\n");
  EXPECT_NE(problems_of(source, data, dir.write("m.lst", "0\n1\n1\n")).find("m.lst: 3 labels for 2 records"), std::string::npos);
}

TEST(TaskRecords, WhereLeavesRecordsOutAndKeepsTheirNumbers) {
  const TempDir dir;
  DataSource source;
  source.where = Template("{{ id >= 11 }}", std::make_shared<const Rewrite>());
  const auto records = read(source, dir.write("a.jsonl", "{\"id\":10}\n{\"id\":11}\n"));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].id, 1);
}

TEST(TaskRecords, BrokenRecordsAreToldTogetherByFileAndLine) {
  const TempDir dir;
  const std::string said = problems_of({}, dir.write("a.jsonl", "{\"a\":1}\n{\"a\":\n[1]\n{\"a\":2}\n\"text\"\n"));
  EXPECT_NE(said.find("a.jsonl:2: parse error"), std::string::npos) << said;
  EXPECT_NE(said.find("a.jsonl:3: a list where an object with fields is needed"), std::string::npos) << said;
  EXPECT_NE(said.find("a.jsonl:5: a text where"), std::string::npos) << said;
  EXPECT_THROW(read({}, dir.path("a.jsonl")), UsageError);

  EXPECT_NE(problems_of({}, dir.write("a.csv", "a,b\n1,2\n\n1,2,3\n1,\"2\n")).find("a.csv:4: 3 fields, where there are 2 columns"),
            std::string::npos);
  EXPECT_NE(problems_of({}, dir.path("a.csv")).find("a.csv:5: a quote that is not closed"), std::string::npos);
  EXPECT_NE(problems_of({}, dir.write("b.csv", "a\nx\nb\xff\n")).find("b.csv:3: invalid UTF-8"), std::string::npos);
  EXPECT_NE(problems_of({}, dir.write("b.json", R"([{"a":1}, 2])")).find("b.json item 2: a number where"), std::string::npos);
  EXPECT_NE(problems_of({}, dir.write("c.json", "{")).find("c.json: parse error"), std::string::npos);
}

TEST(TaskRecords, ManyProblemsAreCut) {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 50; ++i) text += "x\n";
  const std::string said = problems_of({}, dir.write("a.jsonl", text));
  EXPECT_NE(said.find("and 30 more"), std::string::npos);
}

TEST(TaskRecords, DamagedAndEmptyFilesAreProblems) {
  const TempDir dir;
  const std::string whole = test::gzip("{\"a\":1}\n{\"a\":2}\n");
  EXPECT_NE(problems_of({}, dir.write("a.jsonl.gz", whole.substr(0, whole.size() - 6))).find("a.jsonl.gz: "), std::string::npos);
  EXPECT_NE(problems_of({}, dir.write("b.jsonl", "\n")).find("b.jsonl: no records"), std::string::npos);
  EXPECT_NE(problems_of({}, dir.write("c.dat", "{}")).find("its name does not tell the format"), std::string::npos);
}

}  // namespace
}  // namespace hlat
