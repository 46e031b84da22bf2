// A config's data, opened: what is read, what is held out, and what is refused with which words.
#include "data/dataset.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "data/embedded/sample_files.h"
#include "data/inspect.h"
#include "data/ledger.h"
#include "data/token_count.h"
#include "data/train_batches.h"
#include "support/documents.h"
#include "support/memory_source.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::TempDir;

// Stories in two files and a tokenizer for them.
class DatasetTest : public testing::Test {
 protected:
  DatasetTest() {
    const EmbeddedCorpus corpus(5);
    dir.write("tokenizer.json", sample_tokenizer(corpus));
    dir.write("a.jsonl", sample_lines(corpus, 0, 60));
    dir.write("b.jsonl", sample_lines(corpus, 60, 40));
    config.data.tokenizer = dir.path("tokenizer.json");
    config.data.sources = {{"a", dir.path("a.jsonl"), 3, "text"}, {"b", dir.path("b.jsonl"), 1, "text"}};
    config.model.vocab = 4096;
    config.train.seq_len = 32;
    config.train.global_batch = 4;
  }
  std::string message(const std::function<void(Config&)>& edit) const {
    Config c = config;
    edit(c);
    std::string text = message_of([&] { const Dataset data(c, 1); });
    for (size_t at; (at = text.find(dir.path())) != std::string::npos;) text.replace(at, dir.path().size(), "");
    return text;
  }

  TempDir dir;
  Config config;
};

TEST_F(DatasetTest, WarnsOfWhatTheTokenizerFileSaysInVain) {
  EXPECT_TRUE(Dataset(config, 1).warnings().empty());
  nlohmann::json file = nlohmann::json::parse(test::slurp(config.data.tokenizer));
  file["truncation"] = {{"max_length", 8}};
  config.data.tokenizer = dir.write("cut.json", file.dump());
  const Dataset data(config, 1);
  ASSERT_EQ(data.warnings().size(), 1u);
  EXPECT_NE(data.warnings()[0].find("'truncation' of the tokenizer file does not concern training"), std::string::npos);
  EXPECT_NE(data.describe().find("(model.vocab = 4096: "), std::string::npos) << data.describe();
}

TEST_F(DatasetTest, RowsAreTheTextsWithAnEndAfterEach) {
  const Dataset data(config, 2);
  EXPECT_EQ(data.files().size(), 2u);
  EXPECT_EQ(data.files()[0]->documents(), 60u);
  Lanes lanes(data.train(), 4, 32);
  Readers readers(data.train());
  for (int r = 0; r < 50; ++r) {
    std::vector<int32_t> row(33);
    std::vector<RowPart> parts;
    lanes.read_row(r % 4, readers, row.data(), &parts);
    for (const RowPart& p : parts) {
      std::string text;
      data.files()[p.source]->read_text(p.document, text);
      std::span<const int32_t> ids(row.data() + p.begin, static_cast<size_t>(p.count));
      EXPECT_EQ(p.ends, ids.back() == data.special().eos);
      if (p.ends) ids = ids.first(ids.size() - 1);
      const std::string part = data.tokenizer().decode(ids);
      EXPECT_NE(text.find(part), std::string::npos) << part;
      EXPECT_TRUE(!p.starts || text.starts_with(part)) << part;
    }
  }
}

TEST_F(DatasetTest, StagesBecomeSegments) {
  config.data.stages = {{.from_step = 0, .from_tokens = 128 * 5, .weights = {{"b", 2}}},
                        {.from_step = 9, .from_tokens = 0, .weights = {{"a", 1}, {"b", 1}}}};
  const Dataset data(config, 1);
  EXPECT_EQ(data.train().segments, (std::vector<Segment>{{1, {0.75, 0.25}}, {6, {0, 1}}, {9, {0.5, 0.5}}}));
  config.data.stages[0].from_tokens = 0;
  EXPECT_EQ(Dataset(config, 1).train().segments, (std::vector<Segment>{{1, {0, 1}}, {9, {0.5, 0.5}}})) << "the first stage begins the run";
}

TEST_F(DatasetTest, TheSplitIsByContentInEveryFile) {
  // The same stories under another name and in another order.
  const EmbeddedCorpus corpus(5);
  dir.write("c.jsonl", sample_lines(corpus, 50, 10) + sample_lines(corpus, 0, 50));
  config.data.sources = {{"a", dir.path("a.jsonl"), 1, "text"}, {"c", dir.path("c.jsonl"), 1, "text"}};
  config.data.validation = 0.2;
  const Dataset data(config, 1);
  EXPECT_GT(data.facts().sources[0].held_out, 0u);
  EXPECT_EQ(data.facts().sources[0].held_out, data.facts().sources[1].held_out);
  ASSERT_EQ(data.validation_sets().size(), 2u);
  const DataReport report = inspect_data(data, 20000);
  for (size_t s = 0; s < 2; ++s) {
    const Mixture& mixture = data.validation_sets()[s].mixture;
    EXPECT_EQ(mixture.split, Split::validation);
    Lanes lanes(mixture, 2, 32);
    Readers readers(mixture);
    std::vector<int32_t> row(33);
    std::vector<RowPart> parts;
    for (int r = 0; r < 20; ++r) lanes.read_row(r % 2, readers, row.data(), &parts);
    for (const RowPart& p : parts) EXPECT_TRUE(is_validation(data.files()[s]->hash(p.document), 0.2));
  }
  EXPECT_GT(report.repeats, 0u) << "two files with the same stories";
  EXPECT_EQ(report.tokens, static_cast<uint64_t>(report.rows * 32));
}

TEST_F(DatasetTest, ReportCountsWhatWasRead) {
  const Dataset data(config, 1);
  const DataReport r = inspect_data(data, 10000);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(r.sources[0].tokens + r.sources[1].tokens, r.tokens);
  EXPECT_NEAR(static_cast<double>(r.sources[0].tokens) / static_cast<double>(r.tokens), 0.75, 0.05);
  EXPECT_EQ(r.sources[0].documents + r.sources[1].documents, r.documents);
  EXPECT_GT(r.sources[0].percentile(1), r.sources[0].percentile(0.05));
  EXPECT_GT(r.sources[0].bytes_per_token, 3);
  EXPECT_EQ(r.sources[0].fallback, 0u);
  // The same walk by the lanes' own books.
  Lanes lanes(data.train(), 4, 32);
  RowReader reader(lanes);
  for (int64_t step = 0; step < r.steps; ++step)
    for (int64_t l = 0; l < 4; ++l) reader.next(l);
  std::vector<LaneState> states;
  for (int64_t l = 0; l < 4; ++l) states.push_back(lanes.state(l));
  const Ledger ledger = ledger_of(data.train(), states, [](double v) { return v; });
  EXPECT_EQ(ledger.tokens(), r.tokens);
  EXPECT_EQ(ledger.documents(), r.documents);
  EXPECT_EQ(ledger.repeats, r.repeats_in_row);
  EXPECT_EQ(ledger.total[1].tokens, r.sources[1].tokens);
  EXPECT_GT(ledger.total[0].epochs, 1);
}

// One long text: every row of a step is another part of it.
TEST_F(DatasetTest, OneLongDocumentHasADifferentRowForEveryLane) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "Once the " + std::to_string(i) + " bears went to the lake . ";
  dir.write("input.txt", text);
  config.data.sources = {{"one", dir.path("input.txt"), 1, "text"}};
  config.train.global_batch = 8;
  const Dataset data(config, 1);
  EXPECT_TRUE(data.warnings().empty()) << data.warnings().front();
  EXPECT_TRUE(report_json(inspect_data(data, 2000))["sources"][0]["tokens_per_document"].is_null()) << "it was not read whole";
  TrainBatches batches(data, {.begin = 0, .count = 8});
  Batch batch(8, 32);
  std::set<std::vector<int32_t>> rows;
  for (int step = 1; step <= 20; ++step) {
    batches.read(0, batch);
    for (int64_t r = 0; r < 8; ++r) rows.insert({batch.inputs.begin() + r * 32, batch.inputs.begin() + (r + 1) * 32});
    EXPECT_EQ(rows.size(), static_cast<size_t>(8 * step)) << "step " << step;
  }
}

TEST_F(DatasetTest, ACorpusSmallerThanAStepIsToldOfAndCounted) {
  EXPECT_TRUE(Dataset(config, 1).warnings().empty());
  dir.write("tiny.txt", "the bear went to the lake .");
  config.data.sources = {{"tiny", dir.path("tiny.txt"), 1, "text"}};
  const Dataset data(config, 1);
  const uint64_t tokens = count_tokens(data.train(), 0, 2);
  EXPECT_GT(tokens, 5u);
  ASSERT_EQ(data.warnings().size(), 1u);
  EXPECT_EQ(data.warnings()[0].find("source tiny: its " + std::to_string(tokens) + " tokens are fewer than the 128 that a step reads"), 0u)
      << data.warnings()[0];
  TrainBatches batches(data, {.begin = 0, .count = 4});
  Batch batch(4, 32);
  for (int step = 0; step < 10; ++step) batches.read(0, batch);
  EXPECT_NEAR(batches.ledger([](double v) { return v; }).total[0].epochs, 1280.0 / static_cast<double>(tokens), 2);
}

TEST_F(DatasetTest, TokensAreCountedAsTheyAreServed) {
  config.data.validation = 0.2;
  const Dataset data(config, 1);
  for (size_t s = 0; s < 2; ++s) {
    uint64_t expected = 0;
    const auto reader = data.files()[s]->reader();
    for (uint64_t d = 0; d < data.files()[s]->documents(); ++d) {
      Document piece;
      if (data.train().has(s, d)) reader->read(d, 0, DocumentReader::kEnd, piece), expected += piece.tokens.size();
    }
    EXPECT_EQ(count_tokens(data.train(), s, 3), expected);
    EXPECT_GE(count_tokens(data.train(), s, 3, 100), 100u);
  }
}

TEST_F(DatasetTest, HeldOutRowsOfOneDocumentDiffer) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "Once the " + std::to_string(i) + " bears went to the lake . ";
  dir.write("input.txt", text);
  Mixture mixture;
  config.data.sources = {{"one", dir.path("input.txt"), 1, "text"}};
  const Dataset data(config, 1);
  mixture = data.train();
  mixture.cut_share = 1;
  Lanes lanes(mixture, 8, 32);
  RowReader reader(lanes);
  std::set<std::vector<int32_t>> rows;
  for (int64_t l = 0; l < 8; ++l) rows.insert(reader.next(l));
  EXPECT_EQ(rows.size(), 8u);
}

TEST_F(DatasetTest, WhatCannotWorkIsRefusedAndNamed) {
  EXPECT_EQ(message([](Config& c) { c.model.vocab = 300; }).substr(0, 60), "model.vocab = 300: the tokenizer tokenizer.json has 1718 tok");
  EXPECT_NE(message([](Config& c) { c.data.eos = "<stop>"; }).find("data.eos = <stop>: the tokenizer"), std::string::npos);
  EXPECT_NE(message([](Config& c) { c.data.bos = true; }).find("no begin-of-text token"), std::string::npos);
  EXPECT_NE(message([](Config& c) { c.data.sources[1].path += "x"; }).find("b.jsonlx"), std::string::npos);
  EXPECT_NE(message([](Config& c) { c.data.validation = 1e-9; }).find("holds out none of the 100 documents"), std::string::npos);
  EXPECT_NE(message([](Config& c) { c.data.tokenizer += "x"; }).find("tokenizer.jsonx"), std::string::npos);
  EXPECT_NE(message([](Config& c) { c.data.sources.clear(), c.data.embedded = false; }).find("no other data is named"), std::string::npos);
  EXPECT_NE(message([](Config& c) { c.data.sources[0].field = "body"; }).find("body"), std::string::npos) << "no line has that key";
  dir.write("bad.jsonl", "{\"text\": \"fine\"}\nnot json\n{\"text\": 5}\n");
  EXPECT_NE(message([&](Config& c) {
              c.data.sources[0].path = dir.path("bad.jsonl");
              c.data.bad_share = 0;
            }).find("bad.jsonl:2"),
            std::string::npos);
  dir.write("empty.jsonl", "");
  EXPECT_NE(message([&](Config& c) { c.data.sources[0].path = dir.path("empty.jsonl"); }).find("empty.jsonl"), std::string::npos);
}

// Bad input is for the user to mend: exit code 2.
TEST_F(DatasetTest, BadInputIsAUsageError) {
  dir.write("bad.jsonl", "{\"text\": \"fine\"}\nnot json\n{\"text\": 5}\n");
  dir.write("empty.jsonl", "");
  const std::vector<std::function<void(Config&)>> edits = {
      [&](Config& c) { c.data.sources[0].path = dir.path("none*"); },
      [&](Config& c) { c.data.sources[0].path = dir.path("empty.jsonl"); },
      [](Config& c) { c.data.sources[0].field = "body"; },
      [](Config& c) { c.data.validation = 1e-9; },
      [&](Config& c) { c.data.sources[0].path = dir.path("bad.jsonl"), c.data.bad_share = 0; },
      [&](Config& c) { c.data.sources[0].validation = dir.path("a.jsonl"); },
  };
  for (size_t i = 0; i < edits.size(); ++i) {
    Config c = config;
    edits[i](c);
    EXPECT_THROW(Dataset(c, 1), UsageError) << i;
  }
}

TEST_F(DatasetTest, ASourceWithoutADocumentSaysWhy) {
  dir.write("one.jsonl", "\n{\"story\": \"a\"}\n");
  const std::string text = message([&](Config& c) { c.data.sources[0].path = dir.path("one.jsonl"), c.data.bad_share = 1; });
  EXPECT_EQ(text,
            "source a: there is no document in one.jsonl\none.jsonl: 1 of 1 documents are bad\n"
            "  one.jsonl:2: no field \"text\"; it has story");
}

TEST_F(DatasetTest, OnlyEmptyTextsAreRefusedAndSomeAreCounted) {
  dir.write("e.jsonl", "{\"text\": \"\"}\n{\"text\": \"\"}\n");
  EXPECT_EQ(message([&](Config& c) { c.data.sources[0].path = dir.path("e.jsonl"); }),
            "source a: all of its 2 documents in e.jsonl are empty: there is nothing to train on but end tokens");
  dir.write("e.jsonl", "{\"text\": \"\"}\n{\"text\": \"some\"}\n");
  config.data.sources[0].path = dir.path("e.jsonl");
  EXPECT_NE(Dataset(config, 1).describe().find("2 documents (0 held out, 1 empty)"), std::string::npos);
}

TEST_F(DatasetTest, ABrokenFileIsRefusedUnlessAllowed) {
  const std::string whole = test::zstd(sample_lines(EmbeddedCorpus(5), 0, 2000));
  config.data.sources[0].path = dir.write("cut.jsonl.zst", whole.substr(0, whole.size() / 10));
  const std::string text = message_of([&] { const Dataset data(config, 1); });
  EXPECT_NE(text.find("cut.jsonl.zst: the file is broken"), std::string::npos) << text;
  EXPECT_NE(text.find("of text ("), std::string::npos) << "how much is lost: " << text;
  EXPECT_NE(text.find("data.allow_broken=true"), std::string::npos) << text;
  dir.write("cut.jsonl.zst", test::zstd(sample_lines(EmbeddedCorpus(5), 0, 200)) + whole.substr(0, whole.size() / 2));
  config.data.allow_broken = true;
  const Dataset data(config, 1);
  EXPECT_GE(data.files()[0]->documents(), 200u);
  ASSERT_EQ(data.warnings().size(), 1u);
  EXPECT_NE(data.warnings()[0].find("the file is broken"), std::string::npos);
}

TEST_F(DatasetTest, OneFileInTwoSourcesOrByTwoNamesIsTold) {
  std::filesystem::create_symlink(dir.path("a.jsonl"), dir.path("a2.jsonl"));
  config.data.sources[0].path = dir.path("a*.jsonl");
  config.data.sources[1].path = dir.path("[ab].jsonl");
  const Dataset data(config, 1);
  EXPECT_EQ(data.files()[0]->documents(), 60u) << "counted once";
  ASSERT_EQ(data.warnings().size(), 2u);
  EXPECT_NE(data.warnings()[0].find("sources 1 and 2 share 1 file"), std::string::npos) << data.warnings()[0];
  EXPECT_NE(data.warnings()[1].find("found twice and read once: " + dir.path("a2.jsonl") + " is "), std::string::npos)
      << data.warnings()[1];
}

// Files of their own are validated on and never trained on, also where the source's pattern names them.
TEST_F(DatasetTest, ValidationFilesAreASetOfTheirOwn) {
  const EmbeddedCorpus corpus(5);
  dir.write("b_val.jsonl", sample_lines(corpus, 500, 20));
  config.data.sources[1].path = dir.path("b*.jsonl");
  config.data.sources[1].validation = dir.path("b_val.jsonl");
  const Dataset data(config, 1);
  EXPECT_EQ(data.files()[1]->documents(), 40u);
  ASSERT_NE(data.validation_files()[1], nullptr);
  EXPECT_EQ(data.validation_files()[0], nullptr);
  EXPECT_EQ(data.validation_files()[1]->documents(), 20u);
  ASSERT_EQ(data.validation_sets().size(), 1u);
  EXPECT_EQ(data.validation_sets()[0].name, "b");
  EXPECT_EQ(validate_rows(config), 4);
  const DatasetFacts facts = DatasetFacts::parse(data.facts().save());
  EXPECT_EQ(Dataset(config, 1, &facts).facts(), facts);

  config.data.validation = 0.2;
  const Dataset both(config, 1);
  ASSERT_EQ(both.validation_sets().size(), 3u);
  EXPECT_EQ(both.validation_sets()[0].name, "a");
  EXPECT_EQ(both.validation_sets()[1].name, "b/held_out");
  EXPECT_EQ(both.validation_sets()[2].name, "b");
  EXPECT_EQ(both.validation_sets()[0].weight, 0.75);
  EXPECT_EQ(both.validation_sets()[2].weight, 0.125);
}

TEST_F(DatasetTest, AllDocumentsHeldOutIsRefused) {
  const EmbeddedCorpus corpus(5);
  // A file of one document that the split takes.
  for (uint64_t i = 0; i < 100; ++i) {
    dir.write("one.jsonl", sample_lines(corpus, i, 1));
    config.data.sources[1] = {"one", dir.path("one.jsonl"), 1, "text"};
    config.data.validation = 0.3;
    const std::string text = message_of([&] { const Dataset data(config, 1); });
    if (text == "no exception") continue;
    EXPECT_EQ(text, "source one: data.validation = 0.3 holds out all of its 1 documents; give a smaller share, or more documents");
    return;
  }
  FAIL() << "none of 100 documents was held out";
}

TEST_F(DatasetTest, AFileThatChangesUnderTheRunIsNamed) {
  const Dataset data(config, 1);
  TrainBatches batches(data, {.begin = 0, .count = 4});
  Batch batch(4, 32);
  batches.read(0, batch);
  dir.write("a.jsonl", std::string(100000, 'x'));
  std::string text = "no exception";
  for (int step = 0; step < 500 && text == "no exception"; ++step) text = message_of([&] { batches.read(0, batch); });
  EXPECT_NE(text.find("a.jsonl"), std::string::npos) << text;
  EXPECT_NE(text.find("changed"), std::string::npos) << text;
}

TEST_F(DatasetTest, AFileThatChangedBeforeAResumeIsNamed) {
  DataState state;
  const auto go_on = [&] {
    const Dataset data(config, 1);
    TrainBatches batches(data, {.begin = 0, .count = 4}, state.lanes.empty() ? std::nullopt : std::optional(state));
    Batch batch(4, 32);
    batches.read(0, batch);
    state = batches.position();
  };
  go_on();
  EXPECT_EQ(message_of(go_on), "no exception");
  EXPECT_EQ(state.step(), 2);
  dir.write("b.jsonl", sample_lines(EmbeddedCorpus(6), 0, 40));
  EXPECT_EQ(message_of(go_on), dir.path("b.jsonl") + " (source b) changed since the data position was saved");
  dir.write("b.jsonl", sample_lines(EmbeddedCorpus(5), 60, 40));  // back as it was, with another change time
  EXPECT_EQ(message_of(go_on), "no exception");
}

TEST_F(DatasetTest, OneProcessOfAMachineVerifiesForTheOthers) {
  config.data.validation = 0.2;
  const auto expect_work = [](const Dataset& data, const DataWork& expected) {
    EXPECT_EQ(data.work().files_opened, expected.files_opened);
    EXPECT_EQ(data.work().files_scanned, expected.files_scanned);
    EXPECT_EQ(data.work().indices_hashed, expected.indices_hashed);
    EXPECT_EQ(data.work().documents_walked, expected.documents_walked);
  };
  expect_work(Dataset(config, 1), {.files_opened = 2, .files_scanned = 2, .indices_hashed = 2, .documents_walked = 100});
  const Dataset first(config, 1);
  expect_work(first, {.files_opened = 2, .files_scanned = 0, .indices_hashed = 2, .documents_walked = 100});
  const DatasetFacts facts = DatasetFacts::parse(first.facts().save());
  EXPECT_EQ(facts, first.facts());
  const Dataset second(config, 1, &facts);
  expect_work(second, {.files_opened = 2, .files_scanned = 0, .indices_hashed = 0, .documents_walked = 0});
  EXPECT_EQ(second.facts(), facts);
  EXPECT_EQ(second.describe(), first.describe());
  TrainBatches a(first, {.begin = 0, .count = 4}), b(second, {.begin = 0, .count = 4});
  Batch from_a(4, 32), from_b(4, 32);
  for (int step = 0; step < 20; ++step) {
    a.read(0, from_a);
    b.read(0, from_b);
    EXPECT_EQ(from_a.inputs, from_b.inputs);
  }
  EXPECT_EQ(a.position(), b.position());
}

TEST_F(DatasetTest, FilesThatChangeDuringStartUpAreNamed) {
  config.data.sources[1].path = dir.path("b*.jsonl");
  const DatasetFacts facts = Dataset(config, 1).facts();
  const auto open = [&] { const Dataset data(config, 1, &facts); };
  EXPECT_EQ(message_of(open), "no exception");
  dir.write("b2.jsonl", sample_lines(EmbeddedCorpus(6), 0, 10));
  EXPECT_EQ(message_of(open), "source b: 2 files match " + dir.path("b*.jsonl") +
                                  ", but 1 did in the process that opened them first: they changed during start-up");
  std::filesystem::remove(dir.path("b2.jsonl"));
  EXPECT_EQ(message_of(open), "no exception");
  dir.write("a.jsonl", sample_lines(EmbeddedCorpus(6), 0, 60));
  const std::string changed =
      dir.path("a.jsonl") + " or its index is not what the process that opened it first found: it changed during start-up";
  EXPECT_EQ(message_of(open), changed);
  const Dataset others_index(config, 1);  // makes an index of the new content
  EXPECT_EQ(message_of(open), changed);
  EXPECT_THROW(DatasetFacts::parse("[{}]"), Error);
}

}  // namespace
}  // namespace hlat
