// Tests of the ids of requests.
#include "weir/http/server/detail/request_id.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "weir/http/test/http_request.hpp"

namespace weir::http::request_id_test {
namespace {

TEST(RequestId, IsVisibleAndShort) {
  EXPECT_TRUE(is_request_id("a"));
  EXPECT_TRUE(is_request_id("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
  EXPECT_TRUE(is_request_id(std::string(128, '~')));
  EXPECT_FALSE(is_request_id(""));
  EXPECT_FALSE(is_request_id(std::string(129, 'a')));
  for (const std::string_view wrong : {"a b", "a\"b", "a\\b", "a\tb", "a\x7f", "\xc3\xa4"}) {
    EXPECT_FALSE(is_request_id(wrong)) << wrong;
  }
}

TEST(RequestId, HasOnlyVisibleCharactersThatNeedNoEscape) {
  for (int each = 0; each < 256; ++each) {
    const bool plain = each > ' ' && each < 0x7f && each != '"' && each != '\\';
    EXPECT_EQ(is_request_id(std::string{'a', static_cast<char>(each), 'z'}), plain) << each;
  }
}

TEST(RequestId, PrefixNamesTheStartOfTheServerAndTheCore) {
  const WallTime now{std::chrono::seconds(1'800'000'000)};
  EXPECT_EQ(request_id_prefix(WallTime(), 3), "000000-3-");
  EXPECT_EQ(request_id_prefix(WallTime(Duration(36 * 36 + 35)), 64), "00010z-64-");
  EXPECT_NE(request_id_prefix(now, 0), request_id_prefix(now + Duration(1), 0));
  EXPECT_EQ(request_id_prefix(WallTime(Duration(-1)), 0), "zzzzzz-0-");
}

TEST(RequestId, IsEmptyWithoutAServer) {
  EXPECT_EQ(TextRequest("GET /").request().id(), "");
}

}  // namespace
}  // namespace weir::http::request_id_test
