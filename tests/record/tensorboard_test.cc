// Event files read back by a small reader that shares no code with the writer (support/event_file.h). The real TensorBoard reads them
// too: tools/check_tensorboard.py.
#include "record/tensorboard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>

#include "base/error.h"
#include "support/event_file.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;

TEST(Crc32c, MatchesPublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventWriter, WritesWhatAnIndependentReaderReads) {
  const fs::path folder = fs::path(testing::TempDir()) / "hlat_tensorboard_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  EventWriter writer(folder, 1700000000.25);
  const fs::path first = fs::directory_iterator(folder)->path();
  EXPECT_NE(first.filename().string().find("events.out.tfevents.1700000000."), std::string::npos);
  StepMetrics m;
  m.step = int64_t{1} << 40;  // a varint of several bytes
  m.loss = 1.5;
  m.floor = 1.25;
  m.grad_norm = std::numeric_limits<double>::quiet_NaN();
  m.lr = 3e-4;
  writer.write(m, 1700000001.5);
  m.step = 2;
  m.floor = std::nan("");
  writer.write(m, 1700000002.5);

  const auto records = read_records(first);  // still open: records are flushed one by one
  ASSERT_EQ(records.size(), 3u);
  const auto version = parse(records[0]);
  EXPECT_EQ(std::bit_cast<double>(only_field(version, 1).number), 1700000000.25);
  EXPECT_EQ(only_field(version, 3).bytes, "brain.Event:2");

  const auto event = parse(records[1]);
  EXPECT_EQ(std::bit_cast<double>(only_field(event, 1).number), 1700000001.5);
  EXPECT_EQ(only_field(event, 2).number, uint64_t{1} << 40);
  std::map<std::string, float> values;
  const auto summary = parse(only_field(event, 5).bytes);
  for (const auto& [number, item] : summary) {
    EXPECT_EQ(number, 1u);
    const auto value = parse(item.bytes);
    values[only_field(value, 1).bytes] = std::bit_cast<float>(static_cast<uint32_t>(only_field(value, 2).number));
  }
  size_t fields = 0;
  m.floor = 1.25;
  scalars(m, [&](const char* name, double value) {
    ++fields;
    const auto at = values.find(std::string("train/") + name);
    ASSERT_NE(at, values.end()) << name;
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(at->second));
    else
      EXPECT_EQ(at->second, static_cast<float>(value)) << name;
  });
  EXPECT_EQ(values.size(), fields);
  EXPECT_EQ(parse(only_field(parse(records[2]), 5).bytes).size(), fields - 1) << "an unknown floor is not written";

  // A second writer in the same second does not touch the first file.
  const EventWriter second(folder, 1700000000.25);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2);
  EXPECT_EQ(read_records(first).size(), 3u);
  fs::remove_all(folder);
}

// As tf.summary.text writes it: DT_STRING, no dimensions, for the plugin "text".
TEST(EventWriter, AnAlarmIsAScalarAndAText) {
  const test::TempDir dir;
  EventWriter writer(dir.path(), 1700000000);
  writer.write(ToldAlarm{.step = 40, .rule = "leak", .value = 0.25, .evidence = "the loss is too good"}, 1700000001);
  const auto records = read_records(fs::directory_iterator(dir.path())->path());
  ASSERT_EQ(records.size(), 2u);
  const auto event = parse(records[1]);
  EXPECT_EQ(only_field(event, 2).number, 40u);
  const auto summary = parse(only_field(event, 5).bytes);
  ASSERT_EQ(summary.count(1), 2u);
  const auto number = parse(summary.begin()->second.bytes), text = parse(std::next(summary.begin())->second.bytes);
  EXPECT_EQ(only_field(number, 1).bytes, "alarm/leak");
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(only_field(number, 2).number)), 0.25F);
  EXPECT_EQ(only_field(text, 1).bytes, "alarm/leak/evidence");
  EXPECT_EQ(only_field(parse(only_field(parse(only_field(text, 9).bytes), 1).bytes), 1).bytes, "text");
  const auto tensor = parse(only_field(text, 8).bytes);
  EXPECT_EQ(only_field(tensor, 1).number, 7u);
  EXPECT_EQ(only_field(tensor, 2).bytes, "");
  EXPECT_EQ(only_field(tensor, 8).bytes, "the loss is too good");
}

TEST(EventWriter, ErrorNamesTheFolder) {
  try {
    EventWriter writer("/nowhere/at/all", 0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("/nowhere/at/all/events.out.tfevents"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace hlat
