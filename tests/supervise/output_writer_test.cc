// Output that nobody reads holds up nobody.
#include "supervise/output_writer.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

namespace hlat {
namespace {

// A reader that takes nothing until it is told to.
struct Reader {
  std::mutex mutex;
  std::condition_variable wake;
  bool reads = false;
  std::string got;

  OutputWriter::Write writer() {
    return [this](std::string_view text) {
      std::unique_lock lock(mutex);
      wake.wait(lock, [&] { return reads; });
      got += text;
    };
  }
  void read() {
    const std::lock_guard lock(mutex);
    reads = true;
    wake.notify_all();
  }
};

TEST(OutputWriter, WritesAllInOrder) {
  Reader reader;
  reader.reads = true;
  {
    OutputWriter writer(reader.writer(), 1 << 20);
    for (int i = 0; i < 100; ++i) writer.put(std::to_string(i) + " ");
  }
  EXPECT_TRUE(reader.got.starts_with("0 1 2 ") && reader.got.ends_with(" 98 99 ")) << reader.got;
}

TEST(OutputWriter, NeverBlocksAndLeavesOutTheOldest) {
  Reader reader;
  {
    OutputWriter writer(reader.writer(), 100);
    for (int i = 1000; i < 2000; ++i) writer.put(std::to_string(i) + "\n");  // comes back although nobody reads
    reader.read();
  }
  EXPECT_TRUE(reader.got.ends_with("1997\n1998\n1999\n")) << reader.got;
  EXPECT_NE(reader.got.find("bytes of output were left out"), std::string::npos) << reader.got;
  EXPECT_LT(reader.got.size(), 300u);
}

}  // namespace
}  // namespace hlat
