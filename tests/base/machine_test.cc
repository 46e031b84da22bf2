// Where the program keeps what it can make again.
#include "base/machine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace hlat {
namespace {

// Sets a variable of the environment, or takes it away, until the end of the scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* value) const { value != nullptr ? setenv(name_, value, 1) : unsetenv(name_); }

  const char* name_;
  std::optional<std::string> before_;
};

TEST(CacheDir, IsTheUsers) {
  const Environment home("HOME", "/home/of");
  const auto with = [](const char* xdg) {
    const Environment e("XDG_CACHE_HOME", xdg);
    return user_cache_dir();
  };
  EXPECT_EQ(with("/cache"), "/cache/hlat");
  EXPECT_EQ(with("relative/cache"), "/home/of/.cache/hlat") << "the XDG specification has it ignored";
  EXPECT_EQ(with(""), "/home/of/.cache/hlat");
  EXPECT_EQ(with(nullptr), "/home/of/.cache/hlat");
  const Environment nobody("HOME", nullptr);
  EXPECT_EQ(with(nullptr), "");
}

}  // namespace
}  // namespace hlat
