// Tests of AcceptEncoding.
#include "weir/web/encoding/accept_encoding.hpp"

#include <gtest/gtest.h>

#include <array>

#include "weir/http/test/http_request.hpp"

namespace weir::http::accept_encoding_test {
namespace {

using enum compression::Coding;

constexpr std::array offered{brotli, zstd, gzip};

ContentCoding choice(std::string_view header) {
  AcceptEncoding accept;
  accept.add(header);
  return accept.choose(offered);
}

TEST(AcceptEncoding, ChoosesIdentityWithoutAHeader) {
  EXPECT_EQ(AcceptEncoding().choose(offered), identity);
  EXPECT_EQ(choice(""), identity);
}

TEST(AcceptEncoding, ChoosesTheHighestQualityAndThenTheOrderOfTheServer) {
  EXPECT_EQ(choice("gzip"), gzip);
  EXPECT_EQ(choice("gzip, deflate, br, zstd"), brotli);
  EXPECT_EQ(choice("gzip;q=0.9, br;q=0.8, zstd;q=0.85"), gzip);
  EXPECT_EQ(choice("gzip;q=0.001"), gzip);
  EXPECT_EQ(choice("*"), brotli);
  EXPECT_EQ(choice("br;q=0, *;q=0.5"), zstd);
  EXPECT_EQ(choice("X-GZip;Q=1.000"), gzip);
}

TEST(AcceptEncoding, PrefersIdentityOnlyWithAHigherQuality) {
  EXPECT_EQ(choice("identity, gzip;q=0.5"), identity);
  EXPECT_EQ(choice("identity;q=0.5, gzip;q=0.5"), gzip);
  EXPECT_EQ(choice("identity;q=0, gzip;q=0.1"), gzip);
}

TEST(AcceptEncoding, RejectsQualityZero) {
  EXPECT_EQ(choice("gzip;q=0, br;q=0.0, zstd;q=0.000"), identity);
  EXPECT_EQ(choice("*;q=0"), identity);
  AcceptEncoding accept;
  accept.add("*;q=0");
  EXPECT_EQ(accept.quality(identity), 0);
  accept.add("identity;q=0.25");
  EXPECT_EQ(accept.quality(identity), 250);
}

TEST(AcceptEncoding, IgnoresMalformedMembers) {
  for (const auto* header :
       {"gzip;q=1.5", "gzip;q=2", "gzip;q=0.1234", "gzip;q=", "gzip;q=.5", "gzip;q=-1",
        "gzip;level=1", "gzip;", "gz ip", ";q=1", "gzip;q=1;q=1", "gzip;q=0x1"}) {
    EXPECT_EQ(choice(std::string(header) + ", zstd;q=0.1"),
              std::string_view(header) == "gzip;" ? gzip : zstd)
        << header;
  }
}

TEST(AcceptEncoding, ReadsAllHeadersOfARequest) {
  const TextRequest both("GET /", {}, "Accept-Encoding: br;q=0.1\r\naccept-encoding: zstd\r\n");
  EXPECT_EQ(AcceptEncoding(both.head()).choose(offered), zstd);
  const TextRequest none("GET /");
  EXPECT_EQ(AcceptEncoding(none.head()).choose(offered), identity);
}

TEST(AcceptEncoding, NamesCodings) {
  EXPECT_EQ(name_of(identity), "identity");
  EXPECT_EQ(name_of(brotli), "br");
  EXPECT_EQ(name_of(zstd), "zstd");
  EXPECT_EQ(name_of(gzip), "gzip");
}

}  // namespace
}  // namespace weir::http::accept_encoding_test
