// Tests of SHA-1 against the vectors of RFC 3174, and against another implementation for all
// positions of the end.
#include "weir/tls/crypto/detail/sha1.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::tls::detail::sha1_test {
namespace {

std::string digest_of(std::string_view text) {
  const auto digest = sha1(to_bytes(text));
  return std::string(to_text(digest));
}
std::string hex_of(std::string_view text) {
  std::string out;
  for (const char each : digest_of(text)) {
    for (const int shift : {4, 0}) {
      out += "0123456789abcdef"[static_cast<unsigned char>(each) >> shift & 15];
    }
  }
  return out;
}

TEST(Sha1, EqualsTheVectorsOfTheRfc) {
  EXPECT_EQ(hex_of("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(hex_of(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  EXPECT_EQ(hex_of(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

TEST(Sha1, PadsTextsOfAllLengths) {
  std::string digests;
  for (std::size_t size = 0; size < 200; ++size) digests += digest_of(std::string(size, 'a'));
  EXPECT_EQ(hex_of(digests), "8a18f04bac7c86cfcffa6a93e5cb21ae0159deac");
}

}  // namespace
}  // namespace weir::tls::detail::sha1_test
