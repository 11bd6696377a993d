// Tests of raw DEFLATE: examples of RFC 7692, context takeover, windows, limits of output.
#include "weir/compression/raw_deflate.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "weir/compression/error.hpp"
#include "weir/compression/test/contents_fixture.hpp"

namespace weir::compression::raw_deflate_test {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view tail{"\x00\x00\xff\xff", 4};

class RawDeflate : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_raw_deflate()) GTEST_SKIP() << "the build is without zlib";
  }
};

RawDeflater deflater(RawDeflateOptions options = {}) {
  return std::move(RawDeflater::make(options).value());
}
RawInflater inflater(int window_bits = 15) {
  return std::move(RawInflater::make(window_bits).value());
}

/// Returns one message as RFC 7692 sends it, compressed in pieces of `room` bytes.
std::string deflated(RawDeflater& from, std::string_view message, std::size_t room = 4096) {
  std::string out;
  std::vector<std::byte> piece(room);
  for (Bytes rest = to_bytes(message);;) {
    const Progress progress = from.compress(rest, piece, Flush::sync);
    out += to_text(Bytes(piece).first(progress.produced));
    rest = rest.subspan(progress.consumed);
    if (progress.complete) break;
  }
  EXPECT_TRUE(out.ends_with(tail));
  out.resize(out.size() - tail.size());
  return out;
}

/// Decompresses one message, its bytes in pieces of `step` and the output in pieces of `room`.
Result<std::string> inflated(RawInflater& by, std::string_view message, std::size_t step = 4096,
                             std::size_t room = 4096) {
  const std::string whole = std::string(message).append(tail);
  std::string out;
  std::vector<std::byte> piece(room);
  for (std::size_t begin = 0; begin < whole.size(); begin += step) {
    Bytes rest = to_bytes(std::string_view(whole).substr(begin, step));
    for (bool complete = false; !complete;) {
      const auto progress = by.decompress(rest, piece);
      if (!progress) return fail(progress.error());
      out += to_text(Bytes(piece).first(progress->produced));
      rest = rest.subspan(progress->consumed);
      complete = progress->complete;
    }
    EXPECT_TRUE(rest.empty());
  }
  return out;
}

TEST_F(RawDeflate, CompressesTheExampleOfTheRfc) {
  auto from = deflater();
  EXPECT_EQ(deflated(from, "Hello"), "\xf2\x48\xcd\xc9\xc9\x07\x00"sv);
  EXPECT_EQ(deflated(from, "Hello"), "\xf2\x00\x11\x00\x00"sv);  // refers to the first message
  from.reset();
  EXPECT_EQ(deflated(from, "Hello"), "\xf2\x48\xcd\xc9\xc9\x07\x00"sv);
}

TEST_F(RawDeflate, DecompressesTheExamplesOfTheRfc) {
  const std::string_view examples[] = {
      "\xf2\x48\xcd\xc9\xc9\x07\x00"sv,                          // §7.2.3.1
      "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"sv,          // §7.2.3.3: no compression
      "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"sv,                      // §7.2.3.4: a final block
      "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"sv,  // §7.2.3.5: two blocks
  };
  for (const std::string_view example : examples) {
    for (std::size_t step = 1; step <= example.size(); ++step) {
      auto by = inflater();
      EXPECT_EQ(inflated(by, example, step, 1 + step % 3), "Hello");
    }
  }
}

TEST_F(RawDeflate, KeepsTheWindowAfterAFinalBlock) {
  auto by = inflater();
  EXPECT_EQ(inflated(by, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"sv), "Hello");
  EXPECT_EQ(inflated(by, "\xf2\x00\x11\x00\x00"sv), "Hello");
}

TEST_F(RawDeflate, ReturnsBehindEachFinalBlock) {
  auto by = inflater();
  EXPECT_EQ(inflated(by, "\xf2\x48\xcd\xc9\xc9\x07\x00"sv), "Hello");
  const std::string_view blocks = "\x03\x00\x03\x00\x03\x00"sv;
  std::vector<std::byte> room(10);
  for (std::size_t begin = 0; begin < blocks.size(); begin += 2) {
    const auto progress = by.decompress(to_bytes(blocks.substr(begin)), room).value();
    EXPECT_EQ(progress.consumed, 2U);
    EXPECT_EQ(progress.produced, 0U);
    EXPECT_EQ(progress.complete, begin + 2 == blocks.size());
  }
  EXPECT_EQ(inflated(by, "\xf2\x00\x11\x00\x00"sv), "Hello") << "the window stays";
}

TEST_F(RawDeflate, RejectsAReferenceThatResetHasForgotten) {
  auto by = inflater();
  EXPECT_EQ(inflated(by, "\xf2\x48\xcd\xc9\xc9\x07\x00"sv), "Hello");
  EXPECT_EQ(inflated(by, "\xf2\x00\x11\x00\x00"sv), "Hello");
  by.reset();
  EXPECT_EQ(inflated(by, "\xf2\x00\x11\x00\x00"sv).error(), DecompressError::corrupt);
  by.reset();
  EXPECT_EQ(inflated(by, "\xf2\x48\xcd\xc9\xc9\x07\x00"sv), "Hello");
}

TEST_F(RawDeflate, RoundTripsEachWindowAndSizeOfPieces) {
  const std::string messages[] = {
      "", "a", words(100), words(70'000), noise(70'000), words(5000, 2)};
  for (int bits = 9; bits <= 15; ++bits) {
    for (const std::size_t room : {std::size_t{16}, std::size_t{37}, std::size_t{100'000}}) {
      auto from = deflater({.window_bits = bits, .level = 1 + bits % 9, .memory_level = 5});
      auto by = inflater(bits);
      for (const std::string& message : messages) {
        EXPECT_EQ(inflated(by, deflated(from, message, room), room, room), message);
      }
    }
  }
}

TEST_F(RawDeflate, CompressesAMessageInParts) {
  auto from = deflater();
  std::vector<std::byte> out(100'000);
  std::size_t size = 0;
  const std::string message = words(50'000);
  for (std::size_t begin = 0; begin < message.size(); begin += 1000) {
    const auto part = to_bytes(std::string_view(message).substr(begin, 1000));
    const Progress progress = from.compress(part, MutableBytes(out).subspan(size), Flush::none);
    EXPECT_TRUE(progress.complete);
    EXPECT_EQ(progress.consumed, part.size());
    size += progress.produced;
  }
  const Progress end = from.compress({}, MutableBytes(out).subspan(size), Flush::sync);
  EXPECT_TRUE(end.complete);
  auto by = inflater();
  const auto sent = to_text(Bytes(out).first(size + end.produced - tail.size()));
  EXPECT_LT(sent.size(), message.size() / 2);
  EXPECT_EQ(inflated(by, sent), message);
}

TEST_F(RawDeflate, BoundsTheOutputOfOneCall) {
  auto from = deflater();
  const std::string bomb = deflated(from, std::string(1'000'000, 'a'));
  ASSERT_LT(bomb.size(), 10'000u);
  auto by = inflater();
  std::vector<std::byte> room(1000);
  const auto progress = by.decompress(to_bytes(bomb), room).value();
  EXPECT_EQ(progress.produced, room.size());
  EXPECT_FALSE(progress.complete);
}

TEST_F(RawDeflate, HoldsAtMostTheMemoryThatItStates) {
  const std::string message = noise(200'000);
  for (int bits = 9; bits <= 15; ++bits) {
    for (int level = 1; level <= 9; ++level) {
      const RawDeflateOptions options{.window_bits = bits, .level = 6, .memory_level = level};
      auto from = deflater(options);
      auto by = inflater(bits);
      EXPECT_EQ(inflated(by, deflated(from, message)), message);
      EXPECT_LE(from.memory_bytes(), raw_deflate_bytes_max(options));
      EXPECT_GE(2 * from.memory_bytes(), raw_deflate_bytes_max(options) - 16 * 1024);
      EXPECT_LE(by.memory_bytes(), raw_inflate_bytes_max(bits));
    }
  }
}

TEST_F(RawDeflate, RejectsOptionsOutOfRange) {
  EXPECT_EQ(RawDeflater::make({.window_bits = 8}).error(), Errc::bad_configuration);
  EXPECT_EQ(RawDeflater::make({.window_bits = 16}).error(), Errc::bad_configuration);
  EXPECT_EQ(RawDeflater::make({.level = 10}).error(), Errc::bad_configuration);
  EXPECT_EQ(RawDeflater::make({.level = -1}).error(), Errc::bad_configuration);
  EXPECT_EQ(RawDeflater::make({.memory_level = 0}).error(), Errc::bad_configuration);
  EXPECT_EQ(RawDeflater::make({.memory_level = 10}).error(), Errc::bad_configuration);
  EXPECT_EQ(RawInflater::make(7).error(), Errc::bad_configuration);
  EXPECT_EQ(RawInflater::make(16).error(), Errc::bad_configuration);
  EXPECT_TRUE(RawInflater::make(8).has_value());
}

}  // namespace
}  // namespace weir::compression::raw_deflate_test
