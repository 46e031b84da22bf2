// Bytes from rank to rank: what was packed comes out, and what is cut off or counts more than there is is refused before memory is taken.
#include "base/packed.h"

#include <gtest/gtest.h>

namespace hlat::test {
namespace {

TEST(Packed, IsTheSameAfterTheJourneyAndRefusedWhenItIsCut) {
  Packer p;
  p.add(3.5);
  p.add(true);
  p.add(std::string("a text"));
  p.add(std::vector<int32_t>{1, -2});
  p.add(std::vector<float>{});
  const std::string bytes = p.take();
  const auto read = [](std::string_view from) {
    Unpacker u(from, "the parcel");
    EXPECT_EQ(u.get<double>(), 3.5);
    EXPECT_TRUE(u.get<bool>());
    EXPECT_EQ(u.text(), "a text");
    EXPECT_EQ(u.list<int32_t>(), (std::vector<int32_t>{1, -2}));
    EXPECT_TRUE(u.list<float>().empty());
  };
  read(bytes);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_THROW(read(std::string_view(bytes).substr(0, n)), FaultError) << n;
}

TEST(Packed, CountsOfMoreThanThereIsAreRefused) {
  Packer p;
  p.add(UINT64_MAX / 2);
  p.add(0.0);
  const std::string bytes = p.take();
  EXPECT_THROW(Unpacker(bytes, "x").list<double>(), FaultError);
  EXPECT_THROW(Unpacker(bytes, "x").text(), FaultError);
  EXPECT_THROW(Unpacker(bytes, "x").count(1), FaultError);
}

}  // namespace
}  // namespace hlat::test
