#include "data/data_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/rng.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;
constexpr std::string_view kFormat = "hlat data state";

Json to_json(const DataIdentity& d) {
  return {{"tokenizer", d.tokenizer},   {"eos", d.eos},     {"bos", d.bos},        {"seed", d.seed},
          {"validation", d.validation}, {"lanes", d.lanes}, {"seq_len", d.seq_len}};
}

DataIdentity identity_from(const Json& j) {
  return {.tokenizer = j.at("tokenizer"),
          .eos = j.at("eos"),
          .bos = j.at("bos"),
          .seed = j.at("seed"),
          .validation = j.at("validation"),
          .lanes = j.at("lanes"),
          .seq_len = j.at("seq_len")};
}

// Numbers only, in the order of the struct: there are as many of these as sequences in a batch.
Json to_json(const LaneState& l) {
  Json cursors = Json::array(), counts = Json::array();
  for (const Cursor& c : l.cursors)
    cursors.push_back(c.position == Cursor::kNone
                          ? Json::array()
                          : Json::array({c.epoch, c.position, c.piece, c.offset, c.size, c.tokens, c.end, c.behind}));
  for (const LaneCount& c : l.counts) counts.insert(counts.end(), {c.documents, c.tokens});
  return Json::array({l.rows, l.repeats, std::move(cursors), std::move(counts)});
}

Cursor cursor_from(const Json& j) {
  if (j.empty()) return {};
  return {.epoch = j.at(0),
          .position = j.at(1),
          .piece = j.at(2),
          .offset = j.at(3),
          .size = j.at(4),
          .tokens = j.at(5),
          .end = j.at(6),
          .behind = j.at(7)};
}

LaneState lane_from(const Json& j) {
  LaneState l{.rows = j.at(0), .repeats = j.at(1), .cursors = {}, .counts = {}};
  for (const Json& c : j.at(2)) l.cursors.push_back(cursor_from(c));
  const Json& counts = j.at(3);
  if (counts.size() % 2 != 0) fail("the counts of a lane are not pairs");
  for (size_t i = 0; i < counts.size(); i += 2) l.counts.push_back({counts[i], counts[i + 1]});
  return l;
}

Json to_json(const std::vector<LaneState>& lanes) {
  Json list = Json::array();
  for (const LaneState& l : lanes) list.push_back(to_json(l));
  return list;
}

std::vector<LaneState> lanes_from(const Json& list) {
  std::vector<LaneState> lanes;
  for (const Json& j : list) lanes.push_back(lane_from(j));
  return lanes;
}

Json to_json(const std::vector<SourceRecord>& sources) {
  Json list = Json::array();
  for (const SourceRecord& r : sources) list.push_back({{"name", r.name}, {"documents", r.documents}, {"files", r.files}});
  return list;
}

Json body_of(const DataState& s) {
  Json segments = Json::array();
  for (const Segment& g : s.segments) segments.push_back({{"from_step", g.from_step}, {"weights", g.weights}});
  return {{"identity", to_json(s.identity)},
          {"sources", to_json(s.sources)},
          {"segments", std::move(segments)},
          {"first_lane", s.first_lane},
          {"lanes", to_json(s.lanes)}};
}

DataState state_from(const Json& body) {
  DataState s;
  s.identity = identity_from(body.at("identity"));
  for (const Json& j : body.at("sources")) s.sources.push_back({j.at("name"), j.at("documents"), j.at("files")});
  for (const Json& j : body.at("segments")) s.segments.push_back({j.at("from_step"), j.at("weights")});
  s.first_lane = body.at("first_lane");
  s.lanes = lanes_from(body.at("lanes"));
  return s;
}

// The checksum says that nothing was damaged; this says that the parts fit each other, whoever wrote them.
void check_shape(const DataState& s) {
  const size_t sources = s.sources.size(), cells = sources * s.segments.size();
  for (const Segment& g : s.segments)
    if (g.weights.size() != sources) fail("a segment has {} weights for {} sources", g.weights.size(), sources);
  for (const LaneState& l : s.lanes) {
    if (l.cursors.size() != sources || l.counts.size() > cells || (sources > 0 && l.counts.size() % sources != 0) ||
        l.rows != s.lanes.front().rows)
      fail("lane {} does not fit its {} sources and {} segments", s.first_lane + (&l - s.lanes.data()), sources, s.segments.size());
  }
}

}  // namespace

std::string DataState::save() const {
  const Json body = body_of(*this);
  const std::string checksum = fmt::format("{:016x}", hash_name(body.dump()));
  return Json{{"format", kFormat}, {"version", kVersion}, {"checksum", checksum}, {"state", body}}.dump() + "\n";
}

DataState DataState::parse(std::string_view text) try {
  const Json j = Json::parse(text);
  if (j.at("format") != kFormat) fail("its format is {}", j.at("format").dump());
  if (j.at("version") == 1)
    fail(
        "it has version 1, in which lanes read whole documents and mixed sources by document; this program reads version {}, and its "
        "batches are others: go on with the program that made it, or begin with the start of the data",
        kVersion);
  if (j.at("version") != kVersion) fail("it has version {}, this program reads version {}", j.at("version").dump(), kVersion);
  const Json& body = j.at("state");
  if (j.at("checksum") != fmt::format("{:016x}", hash_name(body.dump()))) fail("its checksum does not match: it was damaged or edited");
  DataState s = state_from(body);
  check_shape(s);
  return s;
} catch (const nlohmann::json::exception& e) {
  fail("the saved data position cannot be read: {}", e.what());
} catch (const Error& e) {
  fail("the saved data position cannot be used: {}", e.what());
}

uint64_t DataState::fingerprint() const { return hash_name(Json::array({to_json(identity), to_json(sources)}).dump()); }

std::string RankLanes::save() const { return Json{{"data", data}, {"first_lane", first_lane}, {"lanes", to_json(lanes)}}.dump(); }

RankLanes RankLanes::parse(std::string_view text) try {
  const Json j = Json::parse(text);
  return {.data = j.at("data"), .first_lane = j.at("first_lane"), .lanes = lanes_from(j.at("lanes"))};
} catch (const nlohmann::json::exception& e) {
  fail("the data position of a rank cannot be read: {}", e.what());
}

DataState join(DataState first, std::vector<RankLanes> others) {
  std::sort(others.begin(), others.end(), [](const RankLanes& a, const RankLanes& b) { return a.first_lane < b.first_lane; });
  const uint64_t data = others.empty() ? 0 : first.fingerprint();
  for (RankLanes& share : others) {
    HLAT_CHECK(share.data == data, "the rank with the lanes from {} reads other data than that with the lanes from {}", share.first_lane,
               first.first_lane);
    HLAT_CHECK(share.first_lane == first.first_lane + static_cast<int64_t>(first.lanes.size()),
               "lanes from {} do not follow lanes {} to {}", share.first_lane, first.first_lane,
               first.first_lane + static_cast<int64_t>(first.lanes.size()) - 1);
    std::move(share.lanes.begin(), share.lanes.end(), std::back_inserter(first.lanes));
  }
  for (const LaneState& l : first.lanes)
    HLAT_CHECK(l.rows == first.lanes.front().rows, "lane {} stands at step {}, lane {} at step {}",
               first.first_lane + (&l - first.lanes.data()), l.rows, first.first_lane, first.lanes.front().rows);
  return first;
}

}  // namespace hlat
