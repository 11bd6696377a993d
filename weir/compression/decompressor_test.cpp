// Tests of decompressors: split and broken input, members, bombs, windows.
#include "weir/compression/decompressor.hpp"

#include "weir/compression/error.hpp"
#include "weir/compression/test/contents_fixture.hpp"

namespace weir::compression::decompressor_test {
namespace {

using namespace std::string_literals;

Decompressor decompressor(Coding coding, const DecompressLimits& limits = {}) {
  return std::move(Decompressor::make(coding, limits).value());
}

TEST(Decompressor, ReadsInputThatIsSplitAtEachByte) {
  const std::string content = words(3000) + noise(200);
  for (const Coding coding : available_codings()) {
    const std::string data = compressed(coding, content);
    for (std::size_t split = 0; split <= data.size(); ++split) {
      Decompressor by = decompressor(coding);
      std::string out;
      std::vector<std::byte> room(10'000);
      for (const auto part :
           {std::string_view(data).substr(0, split), std::string_view(data).substr(split)}) {
        const auto progress = by.decompress(to_bytes(part), room);
        ASSERT_TRUE(progress.has_value()) << name_of(coding) << ' ' << split;
        EXPECT_TRUE(progress->complete);
        out += to_text(Bytes(room).first(progress->produced));
      }
      EXPECT_EQ(out, content);
      EXPECT_TRUE(by.finish().has_value());
    }
    Decompressor by = decompressor(coding);
    EXPECT_EQ(decompressed(by, data, 1, 1), content);
  }
}

TEST(Decompressor, RejectsATruncatedContentAtEachByte) {
  const std::string content = words(2000);
  for (const Coding coding : available_codings()) {
    const std::string data = compressed(coding, content);
    for (std::size_t size = 1; size < data.size(); ++size) {
      EXPECT_EQ(decompressed(coding, data.substr(0, size)).error(), DecompressError::truncated)
          << name_of(coding) << ' ' << size;
    }
    EXPECT_EQ(decompressed(coding, ""), "");
  }
}

TEST(Decompressor, RejectsTrailingData) {
  for (const Coding coding : available_codings()) {
    const std::string data = compressed(coding, words(2000));
    for (const std::string& more : {"x"s, "\0"s, "trailing data, more than a header"s}) {
      EXPECT_EQ(decompressed(coding, data + more).error(), DecompressError::trailing_data)
          << name_of(coding) << ' ' << more.size();
      Decompressor by = decompressor(coding);
      EXPECT_EQ(decompressed(by, data + more, 1, 1).error(), DecompressError::trailing_data);
    }
  }
}

TEST(Decompressor, ReadsSeveralMembers) {
  for (const Coding coding : {Coding::gzip, Coding::zstd}) {
    if (!is_available(coding)) continue;
    const std::string data =
        compressed(coding, words(500)) + compressed(coding, "") + compressed(coding, words(500, 2));
    for (const std::size_t step : {std::size_t{1}, std::size_t{10}, data.size()}) {
      Decompressor by = decompressor(coding);
      EXPECT_EQ(decompressed(by, data, step, 1 + step), words(500) + words(500, 2));
    }
    EXPECT_EQ(decompressed(coding, data.substr(0, data.size() - 1)).error(),
              DecompressError::truncated);
  }
  for (const Coding coding : {Coding::deflate, Coding::brotli}) {
    if (!is_available(coding)) continue;
    const std::string data = compressed(coding, words(500));
    EXPECT_EQ(decompressed(coding, data + data).error(), DecompressError::trailing_data);
  }
}

TEST(Decompressor, RejectsChangedBytes) {
  const std::string content = words(5000);
  for (const Coding coding : available_codings()) {
    const std::string data = compressed(coding, content);
    std::size_t errors = 0;
    for (std::size_t at = 0; at < data.size(); ++at) {
      std::string changed = data;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      const auto result = decompressed(coding, changed);
      if (!result) ++errors;
    }
    // gzip and deflate have a checksum: only some bytes of the header of gzip mean nothing.
    if (coding == Coding::gzip || coding == Coding::deflate) {
      EXPECT_GE(errors + 6, data.size());
    }
    EXPECT_GT(errors, data.size() / 10) << name_of(coding);
  }
}

/// Returns 40 MB of zeros, at least 900 times smaller.
std::string make_bomb(Coding coding) {
  Compressor by = std::move(Compressor::make({coding, 9}).value());
  std::string bomb = compressed(by, std::string(40'000'000, '\0'), 1'000'000);
  EXPECT_LT(bomb.size(), 40'000'000u / 900) << name_of(coding);
  return bomb;
}

TEST(Decompressor, RejectsABombByItsOutput) {
  for (const Coding coding : available_codings()) {
    const std::string bomb = make_bomb(coding);
    DecompressLimits limits{.output_max = 1'000'000, .ratio_max = 1'000'000};
    Decompressor by = decompressor(coding, limits);
    EXPECT_EQ(decompressed(by, bomb).error(), DecompressError::output_too_large);
    EXPECT_EQ(by.output_bytes(), limits.output_max);
    EXPECT_LE(by.memory_bytes(), decompressor_bytes_max(coding, limits));
    EXPECT_EQ(by.finish().error(), DecompressError::output_too_large);
    std::vector<std::byte> room(10);
    EXPECT_EQ(by.decompress({}, room).error(), DecompressError::output_too_large);
  }
}

TEST(Decompressor, RejectsABombByItsRatio) {
  for (const Coding coding : available_codings()) {
    const std::string bomb = make_bomb(coding);
    Decompressor by = decompressor(coding, {.output_max = 100'000'000});
    EXPECT_EQ(decompressed(by, bomb).error(), DecompressError::ratio_too_high) << name_of(coding);
    EXPECT_LE(by.output_bytes(), DecompressLimits().ratio_free + 4096);
    by.reset();
    EXPECT_EQ(decompressed(by, compressed(coding, words(5'000'000))), words(5'000'000));
    EXPECT_EQ(decompressed(coding, compressed(coding, std::string(1'000'000, ' '))),
              std::string(1'000'000, ' '));
  }
}

TEST(Decompressor, AcceptsExactlyTheOutputOfItsLimit) {
  const std::string content = words(10'000);
  for (const Coding coding : available_codings()) {
    const std::string data = compressed(coding, content);
    EXPECT_EQ(decompressed(coding, data, {.output_max = 10'000}), content);
    EXPECT_EQ(decompressed(coding, data, {.output_max = 9'999}).error(),
              DecompressError::output_too_large);
    EXPECT_EQ(decompressed(coding, compressed(coding, ""), {.output_max = 0}), "");
  }
}

TEST(Decompressor, RejectsAZstdFrameWithALargeWindow) {
  if (!is_available(Coding::zstd)) GTEST_SKIP() << "the build is without zstd";
  // A frame header with a window of 2^23 or 2^24 bytes, and an empty last block.
  const auto frame = [](int log) {
    return "\x28\xb5\x2f\xfd\0"s + static_cast<char>((log - 10) << 3) + "\x01\0\0"s;
  };
  EXPECT_EQ(decompressed(Coding::zstd, frame(23)), "");
  EXPECT_EQ(decompressed(Coding::zstd, frame(24)).error(), DecompressError::window_too_large);
  EXPECT_EQ(decompressed(Coding::zstd, frame(24), {.window_max = 16 << 20}), "");
  EXPECT_EQ(decompressed(Coding::zstd, frame(20), {.window_max = (1 << 20) - 1}).error(),
            DecompressError::window_too_large);
}

TEST(Decompressor, BoundsTheRingBufferOfBrotli) {
  if (!is_available(Coding::brotli)) GTEST_SKIP() << "the build is without brotli";
  // WBITS 24, then a meta-block that announces 16 MiB of uncompressed bytes.
  const std::string data = "\x0f\xff\xff\xff\x80"s + std::string(100'000, 'a');
  const DecompressLimits limits{.window_max = 1 << 20};
  Decompressor by = decompressor(Coding::brotli, limits);
  const auto result = decompressed(by, data);
  EXPECT_FALSE(result.has_value());
  EXPECT_LE(by.memory_bytes(), decompressor_bytes_max(Coding::brotli, limits));
}

TEST(Decompressor, RefusesCodingsThatItCannotRead) {
  EXPECT_EQ(Decompressor::make(Coding::identity).error(), Errc::bad_configuration);
  for (const Coding coding : all_codings) {
    if (!is_available(coding)) {
      EXPECT_EQ(Decompressor::make(coding).error(), Errc::unsupported);
    }
  }
}

TEST(DecompressError, HasNamesAndTexts) {
  const std::error_code code = DecompressError::ratio_too_high;
  EXPECT_STREQ(code.category().name(), "weir.compression");
  EXPECT_EQ(name_of(DecompressError::ratio_too_high), "ratio_too_high");
  EXPECT_NE(code.message().find("ratio"), std::string::npos);
  EXPECT_TRUE(exceeds_limit(code));
  EXPECT_TRUE(exceeds_limit(DecompressError::output_too_large));
  EXPECT_TRUE(exceeds_limit(DecompressError::window_too_large));
  EXPECT_FALSE(exceeds_limit(DecompressError::corrupt));
  EXPECT_FALSE(exceeds_limit(Errc::limit_reached));
}

}  // namespace
}  // namespace weir::compression::decompressor_test
