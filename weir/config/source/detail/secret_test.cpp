// Tests of texts that must not show secrets.
#include "weir/config/source/detail/secret.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::config::secret_test {
namespace {

TEST(ConfigSecret, HidesByKeyByPartAndInUrls) {
  const auto shown = [](std::string_view key, std::string_view text) {
    return without_secrets(key, std::string(text));
  };
  EXPECT_EQ(shown("db.password", "\"hunter2\""), "(hidden)");
  EXPECT_EQ(shown("stores", "[{user = \"a\", password = \"b\"}]"), "(hidden)");
  EXPECT_EQ(shown("stores", "\"redis://me:hunter2@cache/\""), "\"redis://(hidden)@cache/\"");
  EXPECT_EQ(shown("port", "\"x\""), "\"x\"");
}

}  // namespace
}  // namespace weir::config::secret_test
