// Tests of SHA-2 against the examples of FIPS 180-4, and against another implementation for all
// positions of the end.
#include "weir/tls/crypto/detail/sha2.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::tls::detail::sha2_test {
namespace {

/// Returns the digest of a text that is added in pieces of at most `piece` bytes.
template <std::size_t Size, class Word>
std::string digest_of(Sha2<Word> sha, std::string_view text, std::size_t piece = 1000) {
  for (std::size_t done = 0; done < text.size(); done += piece) {
    sha.update(to_bytes(text.substr(done, piece)));
  }
  std::array<std::uint8_t, Size> digest{};
  sha.finish(digest);
  return {digest.begin(), digest.end()};
}
std::string sha256(std::string_view text, std::size_t piece = 1000) {
  return digest_of<32>(Sha2(sha256_initial), text, piece);
}
std::string sha384(std::string_view text, std::size_t piece = 1000) {
  return digest_of<48>(Sha2(sha384_initial), text, piece);
}
std::string sha512(std::string_view text, std::size_t piece = 1000) {
  return digest_of<64>(Sha2(sha512_initial), text, piece);
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char each : bytes) {
    for (const int shift : {4, 0}) {
      out += "0123456789abcdef"[static_cast<unsigned char>(each) >> shift & 15];
    }
  }
  return out;
}

constexpr std::string_view two_blocks =
    "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
    "lmnopqrsmnopqrstnopqrstu";

TEST(Sha2, EqualsTheExamplesOfSha256) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(two_blocks)),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

TEST(Sha2, EqualsTheExamplesOfSha384) {
  EXPECT_EQ(hex(sha384("abc")),
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
            "8086072ba1e7cc2358baeca134c825a7");
  EXPECT_EQ(hex(sha384(two_blocks)),
            "09330c33f71147e83d192fc782cd1b4753111b173b3b05d22fa08086e3b0f712"
            "fcc7c71a557e2db966c3e9fa91746039");
}

TEST(Sha2, EqualsTheExamplesOfSha512) {
  EXPECT_EQ(hex(sha512("abc")),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
  EXPECT_EQ(hex(sha512(two_blocks)),
            "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018"
            "501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909");
}

TEST(Sha2, PadsTextsOfAllLengths) {
  std::string of_256;
  std::string of_384;
  std::string of_512;
  for (std::size_t size = 0; size < 300; ++size) {
    const std::string text(size, 'a');
    of_256 += sha256(text);
    of_384 += sha384(text);
    of_512 += sha512(text);
  }
  EXPECT_EQ(hex(sha256(of_256)),
            "80e953e3b006c4bab43fd5d792f8bd29c122f6cf1497318365fe66bf2d61398d");
  EXPECT_EQ(hex(sha384(of_384)),
            "3e67e819ed3728f536cb6fdeeca3192d03c9330d9f59d3fd761a9da151e9b7cd"
            "74090f102bd163b4ac6bf95562bce2d9");
  EXPECT_EQ(hex(sha512(of_512)),
            "31c336adab577370612bbdd2a77b25de07ec8389de752295ba890ce160fc8065"
            "4d34f23f93a5819b359f2a8ef15f3f274cbfa5becc521e5728397d60265ffb21");
}

TEST(Sha2, TakesAMessageInPieces) {
  const std::string text(1000, 'x');
  for (std::size_t piece = 1; piece < 300; ++piece) {
    EXPECT_EQ(sha256(text, piece), sha256(text)) << piece;
    EXPECT_EQ(sha512(text, piece), sha512(text)) << piece;
  }
}

}  // namespace
}  // namespace weir::tls::detail::sha2_test
