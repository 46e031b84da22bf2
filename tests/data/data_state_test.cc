// The saved position: reads back identical, refuses what does not fit with its reason, and takes changed weights and sources.
#include "data/data_state.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/train_batches.h"
#include "support/memory_source.h"
#include "support/message_of.h"

namespace hlat {
namespace {

constexpr int64_t kStateLanes = 4, kStateT = 24;

struct StateData {
  MemorySource web{"web", {.documents = 50}};
  MemorySource books{"books", {.documents = 20, .first_token = 1'000'000}};
  MemorySource code{"code", {.documents = 30, .first_token = 2'000'000}};
  Mixture mix(const std::vector<const MemorySource*>& sources, std::vector<Segment> segments) const {
    Mixture m{.sources = {}, .names = {}, .segments = {}, .seed = 4};
    for (const MemorySource* s : sources) m.sources.push_back(s), m.names.push_back(s->name());
    for (Segment& g : segments) append_segment(m.segments, {g.from_step, shares(g.weights)});
    return m;
  }
};

DataIdentity state_identity() {
  return {.tokenizer = 77, .eos = 2, .bos = -1, .seed = 4, .validation = 0, .lanes = kStateLanes, .seq_len = kStateT};
}

// All lanes of a run, stopped and continued as training does it.
class LaneRun {
 public:
  explicit LaneRun(const Mixture& mixture, std::optional<DataState> from = {}, const DataIdentity& id = state_identity())
      : batches_(id, mixture, {.begin = 0, .count = kStateLanes}, {}, std::move(from)) {}

  std::vector<std::vector<int32_t>> step() {
    Batch batch(kStateLanes, kStateT);
    batches_.read(0, batch);
    return {batch.inputs, batch.targets};
  }
  DataState state() const { return batches_.position(); }

 private:
  TrainBatches batches_;
};

uint64_t tokens(const DataState& s, const std::string& source, size_t segment) {
  uint64_t sum = 0;
  for (size_t i = 0; i < s.sources.size(); ++i)
    for (const LaneState& l : s.lanes)
      if (s.sources[i].name == source) sum += l.counts[segment * s.sources.size() + i].tokens;
  return sum;
}

TEST(DataState, ReadsBackIdentical) {
  const StateData d;
  LaneRun run(d.mix({&d.web, &d.books}, {{1, {2, 1}}, {6, {1, 0}}}));
  for (int step = 0; step < 10; ++step) {
    const DataState s = run.state();
    EXPECT_EQ(s.step(), step);
    const DataState back = DataState::parse(s.save());
    EXPECT_EQ(back, s);
    EXPECT_EQ(back.save(), s.save());
    run.step();
  }
  EXPECT_LT(run.state().save().size(), 2500u) << "a few numbers per lane";
}

TEST(DataState, AStoppedRunGoesOnAtEveryStep) {
  const StateData d;
  // Segments begin at 4 and 8, so that stops lie before, on and after their borders.
  const Mixture mixture = d.mix({&d.web, &d.books, &d.code}, {{1, {2, 1, 0}}, {4, {0, 1, 2}}, {8, {1, 1, 1}}});
  LaneRun whole(mixture);
  auto stopped = std::make_unique<LaneRun>(mixture);
  for (int step = 0; step < 14; ++step) {
    EXPECT_EQ(stopped->step(), whole.step()) << step;
    EXPECT_EQ(stopped->state(), whole.state()) << step;
    const std::string saved = stopped->state().save();
    stopped = std::make_unique<LaneRun>(mixture, DataState::parse(saved));
  }
}

TEST(DataState, TheStartIsAPositionToo) {
  const StateData d;
  const Mixture mixture = d.mix({&d.web, &d.books}, {{1, {2, 1}}, {3, {1, 2}}});
  LaneRun whole(mixture);
  const DataState start = DataState::parse(whole.state().save());
  EXPECT_EQ(start.step(), 0);
  EXPECT_TRUE(start.segments.empty()) << "none is begun";
  LaneRun again(mixture, start);
  for (int step = 0; step < 5; ++step) EXPECT_EQ(again.step(), whole.step());
  EXPECT_EQ(again.state(), whole.state());
  // Nothing was served with the weights of the first run, so those of the second hold from step 1.
  LaneRun other(d.mix({&d.web, &d.books}, {{1, {0, 1}}}), start);
  other.step();
  EXPECT_EQ(other.state().segments, (std::vector<Segment>{{1, {0, 1}}}));
}

TEST(DataState, ChangedWeightsBeginASegmentThatIsCountedOnItsOwn) {
  const StateData d;
  LaneRun first(d.mix({&d.web, &d.books}, {{1, {1, 1}}}));
  for (int i = 0; i < 5; ++i) first.step();
  LaneRun second(d.mix({&d.web, &d.books}, {{1, {1, 0}}}), first.state());
  for (int i = 0; i < 7; ++i) second.step();
  const DataState s = second.state();
  ASSERT_EQ(s.segments.size(), 2u);
  EXPECT_EQ(s.segments[1].from_step, 6);
  EXPECT_EQ(s.segments[1].weights, (std::vector<double>{1, 0}));
  EXPECT_EQ(tokens(s, "web", 0) + tokens(s, "books", 0), 5u * kStateLanes * kStateT);
  EXPECT_EQ(tokens(s, "web", 1) + tokens(s, "books", 1), 7u * kStateLanes * kStateT);
  EXPECT_EQ(tokens(s, "books", 1), 0u) << "not even the rest of documents that were under way";
}

TEST(DataState, SourcesMayComeAndGoAndComeBack) {
  const StateData d;
  LaneRun first(d.mix({&d.web, &d.books}, {{1, {1, 1}}}));
  for (int i = 0; i < 5; ++i) first.step();
  const DataState a = first.state();
  LaneRun second(d.mix({&d.code, &d.web}, {{1, {1, 1}}}), a);  // in another order too
  for (int i = 0; i < 5; ++i)
    for (const auto& row : second.step())
      for (const int32_t t : row) EXPECT_NE(t / 1'000'000, 1) << "books are gone";
  const DataState b = DataState::parse(second.state().save());
  EXPECT_EQ(b.sources.size(), 3u);
  EXPECT_EQ(tokens(b, "books", 0), tokens(a, "books", 0)) << "what was served stays counted";
  EXPECT_EQ(tokens(b, "books", 1), 0u);
  EXPECT_EQ(tokens(b, "web", 1) + tokens(b, "code", 1), 5u * kStateLanes * kStateT);
  LaneRun third(d.mix({&d.web, &d.books, &d.code}, {{1, {1, 1, 1}}}), b);
  third.step();
  const DataState c = third.state();
  ASSERT_EQ(c.segments.size(), 3u);
  EXPECT_EQ(c.sources.size(), 3u);
  EXPECT_EQ(tokens(c, "books", 0), tokens(a, "books", 0));
  // Positions go on where they were: no document of the first part comes again.
  for (size_t l = 0; l < kStateLanes; ++l) {
    EXPECT_GE(c.lanes[l].cursors[1].read(), a.lanes[l].cursors[1].read());
    EXPECT_LE(c.lanes[l].cursors[1].read(), a.lanes[l].cursors[1].read() + kStateT + 2) << "a row more, and ends of documents";
  }
}

TEST(DataState, WhatDiffersIsNamed) {
  const StateData d;
  const Mixture mixture = d.mix({&d.web, &d.books}, {{1, {1, 1}}});
  LaneRun run(mixture);
  run.step();
  const DataState s = run.state();
  const auto with = [&](const auto& edit) {
    DataIdentity other = state_identity();
    edit(other);
    return message_of([&] { LaneRun(mixture, s, other); });
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(with([](DataIdentity& i) { i.tokenizer = 78; }), "another tokenizer");
  expect(with([](DataIdentity& i) { i.seed = 5; }), "data.seed 4, this run has 5");
  expect(with([](DataIdentity& i) { i.validation = 0.1; }), "data.validation 0, this run has 0.1");
  expect(with([](DataIdentity& i) { i.lanes = 8; }), "train.global_batch 4, this run has 8");
  expect(with([](DataIdentity& i) { i.seq_len = 25; }), "train.seq_len 24, this run has 25");
  expect(with([](DataIdentity& i) { i.bos = 1; }), "data.bos");
  const MemorySource other("books", {.documents = 20, .first_token = 1'000'000, .content = 9});
  const Mixture changed = d.mix({&d.web, &other}, {{1, {1, 1}}});
  expect(message_of([&] { LaneRun(changed, s); }), "books_1.jsonl (source books) changed since");
}

TEST(DataState, DamageIsFound) {
  const StateData d;
  LaneRun run(d.mix({&d.web}, {{1, {1}}}));
  run.step();
  const std::string good = run.state().save();
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string bad = good;
    bad[i] = bad[i] == '1' ? '2' : '1';
    if (bad == good) continue;
    EXPECT_THROW(DataState::parse(bad), Error) << bad;
  }
  for (size_t length = 0; length + 1 < good.size(); length += 11) EXPECT_THROW(DataState::parse(good.substr(0, length)), Error);
  EXPECT_THROW(DataState::parse("[]"), Error);
  EXPECT_THROW(DataState::parse("{\"format\": \"hlat data state\", \"version\": 3}"), Error);
}

TEST(DataState, AnOldVersionIsRefusedByName) {
  const std::string text =
      message_of([] { DataState::parse(R"({"format": "hlat data state", "version": 1, "checksum": "0", "state": {}})"); });
  EXPECT_NE(text.find("version 1, in which lanes read whole documents"), std::string::npos) << text;
  EXPECT_NE(text.find("this program reads version 2"), std::string::npos) << text;
}

TEST(DataState, JoinsTheSharesOfRanks) {
  const StateData d;
  LaneRun run(d.mix({&d.web}, {{1, {1}}}));
  run.step();
  const DataState whole = run.state();
  DataState first = whole;
  first.lanes.resize(1);
  const RankLanes rest{whole.fingerprint(), 1, {whole.lanes.begin() + 1, whole.lanes.end()}};
  EXPECT_EQ(RankLanes::parse(rest.save()), rest);
  EXPECT_EQ(rest.save().find("web"), std::string::npos) << "sources are told by one rank";
  EXPECT_EQ(join(first, {rest}), whole);
  EXPECT_EQ(join(whole, {}), whole);
  EXPECT_THROW(LaneRun(d.mix({&d.web}, {{1, {1}}}), first), Error) << "a part is not enough to go on";
  EXPECT_THROW(RankLanes::parse("{}"), Error);
}

TEST(DataState, SharesThatDoNotFitAreABug) {
  const StateData d;
  LaneRun run(d.mix({&d.web}, {{1, {1}}}));
  run.step();
  const DataState before = run.state();
  run.step();
  const DataState whole = run.state();
  DataState first = whole;
  first.lanes.resize(1);
  const RankLanes rest{whole.fingerprint(), 1, {whole.lanes.begin() + 1, whole.lanes.end()}};
  RankLanes again = rest, late = rest, other = rest;
  again.first_lane = 0;
  late.lanes = {before.lanes.begin() + 1, before.lanes.end()};
  other.data += 1;
  EXPECT_NE(message_of([&] { join(first, {again}); }).find("lanes from 0 do not follow lanes 0 to 0"), std::string::npos);
  EXPECT_NE(message_of([&] { join(first, {late}); }).find("lane 1 stands at step 1, lane 0 at step 2"), std::string::npos);
  EXPECT_NE(message_of([&] { join(first, {other}); }).find("other data"), std::string::npos);
}

}  // namespace
}  // namespace hlat
