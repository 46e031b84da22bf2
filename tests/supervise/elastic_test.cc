// Which mesh runs when hosts or slots are gone, what is idle then, and what is missing when none is possible.
#include "supervise/elastic.h"

#include <gtest/gtest.h>

#include "support/message_of.h"

namespace hlat {
namespace {

using Hosts = std::vector<Host>;

Config config_of(int64_t tp, int64_t pp, int64_t batch, int64_t micro_batch = 1) {
  Config c;
  c.parallel.tp = tp;
  c.parallel.pp = pp;
  c.train.global_batch = batch;
  c.train.micro_batch = micro_batch;
  return c;
}

const Hosts kTwo = {{"a", 2}, {"b", 2}};

TEST(Elastic, LargestReplicasThatDivideTheBatch) {
  const Config c = config_of(1, 1, 12);
  MeshChoice all = choose_mesh(c, kTwo, kTwo);
  EXPECT_EQ(all.dp, 4);
  EXPECT_EQ(all.hosts, kTwo);
  EXPECT_EQ(all.words, "4 of 4 ranks: dp 4");
  MeshChoice three = choose_mesh(c, kTwo, {{"a", 2}, {"b", 1}});
  EXPECT_EQ(three.hosts, (Hosts{{"a", 2}, {"b", 1}}));
  EXPECT_EQ(three.words, "3 of 4 ranks: dp 3");
  MeshChoice one_host = choose_mesh(c, kTwo, {{"b", 2}});
  EXPECT_EQ(one_host.hosts, (Hosts{{"b", 2}}));
  EXPECT_EQ(one_host.words, "2 of 4 ranks: dp 2");
  // Of three slots a batch of 8 takes two.
  MeshChoice idle = choose_mesh(config_of(1, 1, 8), kTwo, {{"a", 2}, {"b", 1}});
  EXPECT_EQ(idle.hosts, (Hosts{{"a", 2}}));
  EXPECT_EQ(idle.idle, (Hosts{{"b", 1}}));
  EXPECT_EQ(idle.words, "2 of 4 ranks: dp 2; idle: 1 slot on b");
}

TEST(Elastic, TensorGroupsCrossHostsWhereLaunchRanksAsksForIt) {
  Config c = config_of(2, 1, 12);
  const Hosts uneven = {{"a", 3}, {"b", 1}};
  EXPECT_EQ(choose_mesh(c, uneven, uneven).dp, 1);
  c.launch.ranks = 4;
  EXPECT_EQ(choose_mesh(c, uneven, uneven).hosts, uneven);
  const MeshChoice less = choose_mesh(c, uneven, {{"a", 3}});
  EXPECT_EQ(less.words, "2 of 4 ranks: dp 1; idle: 1 slot on a");
}

// A replica's share of the batch must be rows enough for FP8.
TEST(Elastic, Fp8WithAChosenMicroBatchTakesFewerReplicas) {
  Config c = config_of(1, 1, 8, 0);
  c.train.seq_len = 8, c.train.precision = PrecisionKind::fp8;
  const Hosts eight = {{"a", 8}};
  EXPECT_EQ(choose_mesh(c, eight, eight).dp, 4);
  c.train.seq_len = 16;
  EXPECT_EQ(choose_mesh(c, eight, eight).dp, 8);
}

TEST(Elastic, FewerReplicasThanWorkAreNotPossible) {
  const Config c = config_of(1, 1, 12);
  EXPECT_EQ(choose_mesh(c, kTwo, {{"a", 2}}, 2).dp, 2);
  const MeshChoice none = choose_mesh(c, kTwo, {{"a", 2}}, 3);
  EXPECT_FALSE(none.possible());
  EXPECT_EQ(none.words, "dp 2 is possible, and less than dp 3 does not work");
}

TEST(Elastic, MicroBatchCounts) {
  EXPECT_EQ(choose_mesh(config_of(1, 1, 12, 3), {{"a", 12}}, {{"a", 12}}).dp, 4);
  EXPECT_EQ(choose_mesh(config_of(1, 1, 12, 0), {{"a", 12}}, {{"a", 12}}).dp, 12);
  EXPECT_EQ(choose_mesh(config_of(1, 1, 12, 0), {{"a", 11}}, {{"a", 11}}).dp, 6);
  Config c = config_of(1, 1, 12, 1);
  c.data.validate_rows = 8;  // rows of validation are shared out too
  EXPECT_EQ(choose_mesh(c, {{"a", 12}}, {{"a", 12}}).dp, 4);
}

TEST(Elastic, TensorParallelGroupsStayWithinHosts) {
  const Hosts odd = {{"a", 3}, {"b", 3}};
  const MeshChoice choice = choose_mesh(config_of(2, 1, 12), odd, odd);
  EXPECT_EQ(choice.dp, 2);
  EXPECT_EQ(choice.hosts, kTwo);
  EXPECT_EQ(choice.words, "4 of 4 ranks: dp 2; idle: 1 slot on a, 1 slot on b");
  // tp 2 x dp 2 that loses a rank
  const MeshChoice less = choose_mesh(config_of(2, 1, 12), kTwo, {{"a", 1}, {"b", 2}});
  EXPECT_EQ(less.hosts, (Hosts{{"b", 2}}));
  EXPECT_EQ(less.words, "2 of 4 ranks: dp 1; idle: 1 slot on a");
  // Where a group fits no host, and where the config fixes what only fits across them.
  const MeshChoice across = choose_mesh(config_of(4, 1, 12), kTwo, kTwo);
  EXPECT_EQ(across.dp, 1);
  EXPECT_EQ(across.hosts, kTwo);
  Config fixed = config_of(2, 1, 12);
  fixed.parallel.dp = 3;
  EXPECT_EQ(choose_mesh(fixed, odd, odd).hosts, odd);
}

TEST(Elastic, PipelineStagesTakeAnyHost) {
  const MeshChoice choice = choose_mesh(config_of(2, 2, 8), {{"a", 2}, {"b", 4}, {"c", 2}}, {{"b", 4}, {"c", 2}});
  EXPECT_EQ(choice.hosts, (Hosts{{"b", 4}}));
  EXPECT_EQ(choice.words, "4 of 8 ranks: dp 1; idle: 2 slots on c");
}

TEST(Elastic, SparesStandInOnly) {
  Config c = config_of(1, 1, 12);
  c.launch.spares = 2;
  const Hosts hosts = {{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}};
  const MeshChoice all = choose_mesh(c, hosts, hosts);
  EXPECT_EQ(all.hosts, kTwo);
  EXPECT_EQ(all.words, "4 of 4 ranks: dp 4; idle: 2 slots on c, 2 slots on d");
  EXPECT_EQ(choose_mesh(c, hosts, {{"b", 2}, {"c", 2}, {"d", 2}}).hosts, (Hosts{{"b", 2}, {"c", 2}}));
  // A slot that is gone is one rank on the spare.
  EXPECT_EQ(choose_mesh(c, hosts, {{"a", 1}, {"b", 2}, {"c", 2}, {"d", 2}}).hosts, (Hosts{{"a", 1}, {"b", 2}, {"c", 1}}));
  EXPECT_EQ(choose_mesh(c, hosts, {{"d", 2}}).words, "2 of 4 ranks: dp 2");
  c.launch.spares = 4;
  EXPECT_EQ(message_of([&] { choose_mesh(c, hosts, hosts); }), "launch.spares (4) leaves none of 4 hosts");
}

TEST(Elastic, FixedReplicasAreAllOrNothing) {
  Config c = config_of(1, 1, 12);
  c.parallel.dp = 4;
  EXPECT_EQ(choose_mesh(c, kTwo, kTwo).dp, 4);
  const MeshChoice none = choose_mesh(c, kTwo, {{"a", 2}, {"b", 1}});
  EXPECT_FALSE(none.possible());
  EXPECT_EQ(none.words, "3 of 4 slots left, needed: 4; parallel.dp is fixed");
  c.parallel.dp = 0;
  c.launch.elastic = false;
  EXPECT_EQ(choose_mesh(c, kTwo, {{"a", 2}, {"b", 1}}).words, "3 of 4 slots left, needed: 4; launch.elastic is off");
  c.launch.elastic = true;
  EXPECT_EQ(choose_mesh(c, kTwo, {}).words, "0 of 4 slots left, needed: 1");
}

TEST(Elastic, RanksOfTheConfig) {
  Config c = config_of(1, 1, 12);
  c.launch.ranks = 3;
  EXPECT_EQ(choose_mesh(c, kTwo, kTwo).words, "3 of 3 ranks: dp 3; idle: 1 slot on b");
  // A slot that was idle takes the place of one that is gone.
  EXPECT_EQ(choose_mesh(c, kTwo, {{"a", 1}, {"b", 2}}).hosts, (Hosts{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(choose_mesh(c, kTwo, {{"b", 2}}).words, "2 of 3 ranks: dp 2");
}

TEST(Elastic, NeverEnough) {
  const auto message = [](const Config& c) { return message_of([&] { choose_mesh(c, kTwo, kTwo); }); };
  Config c = config_of(4, 2, 8);
  EXPECT_EQ(message(c), "8 ranks are needed (tp 4 x pp 2), but 2 hosts have 4 slots");
  c = config_of(2, 1, 8);
  c.parallel.dp = 4;
  EXPECT_EQ(message(c), "8 ranks are needed (tp 2 x pp 1 x dp 4), but 2 hosts have 4 slots");
  c.launch.spares = 1;
  EXPECT_EQ(message(c), "8 ranks are needed (tp 2 x pp 1 x dp 4), but 1 host has 2 slots, not counting 1 spare");
  c = config_of(2, 1, 8);
  c.launch.ranks = 3;
  EXPECT_EQ(message(c), "launch.ranks (3) must be a multiple of 2 (2 tp x 1 pp)");
  c.parallel.dp = 2;
  c.launch.ranks = 2;
  EXPECT_EQ(message(c), "launch.ranks (2) must be 4 (2 tp x 1 pp x 2 dp)");
  c = config_of(1, 1, 8);
  c.launch.ranks = 3;
  EXPECT_EQ(
      message(c),
      "launch.ranks (3) is dp 3, which the config does not allow: dp x train.micro_batch (1) must divide train.global_batch (8); the next "
      "below is dp 2");
  c.launch.ranks = 8;
  EXPECT_EQ(message(c), "8 ranks are needed (tp 1 x pp 1), but 2 hosts have 4 slots");
}

}  // namespace
}  // namespace hlat
