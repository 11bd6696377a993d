// Tests of compressors: all codings and levels, pieces, flushes, memory.
#include "weir/compression/compressor.hpp"

#include "weir/compression/test/contents_fixture.hpp"

namespace weir::compression::compressor_test {
namespace {

std::vector<CodingLevel> some_levels() {
  std::vector<CodingLevel> levels;
  for (const Coding coding : available_codings()) {
    for (const int level : {0, 1, 2, 3, 4, 5, 9, 11, 12, 19}) {
      if (is_valid({coding, level})) levels.push_back({coding, level});
    }
  }
  return levels;
}

Compressor compressor(const CodingLevel& level) {
  return std::move(Compressor::make(level).value());
}

TEST(Compressor, RoundTripsContentsInPieces) {
  const std::string contents[] = {"", "a", words(300), words(300'000), noise(300'000)};
  for (const Coding coding : available_codings()) {
    Compressor by = compressor({coding, 1});
    for (const std::string& content : contents) {
      for (const std::size_t step :
           {std::size_t{777}, std::size_t{65'536}, std::size_t{1'000'000}}) {
        by.reset();
        const std::string data = compressed(by, content, step, step / 7);
        EXPECT_EQ(decompressed(coding, data), content) << name_of(coding) << ' ' << step;
      }
    }
  }
}

TEST(Compressor, MakesWordsSmallerWithinItsMemory) {
  const std::string content = words(400'000) + noise(400'000);
  for (const CodingLevel& level : some_levels()) {
    Compressor by = compressor(level);
    const std::string data = compressed(by, content, 1'000'000, 50'000);
    EXPECT_LT(data.size(), 650'000u) << name_of(level.coding) << ' ' << level.level;
    EXPECT_EQ(decompressed(level.coding, data), content);
    EXPECT_LE(by.memory_bytes(), compressor_bytes_max(level))
        << name_of(level.coding) << ' ' << level.level;
    EXPECT_GT(by.memory_bytes(), 0u);
  }
}

TEST(Compressor, ShowsAllInputToAReceiverAfterAFlush) {
  for (const Coding coding : available_codings()) {
    Compressor by = compressor({coding, 1});
    Decompressor receiver = std::move(Decompressor::make(coding).value());
    std::vector<std::byte> room(100'000);
    for (std::size_t index = 0; index < 50; ++index) {
      const std::string event = "data: " + words(10 + 400 * (index % 5), 3) + "\n\n";
      Buffer sent;
      by.append(to_bytes(event), Flush::sync, sent);
      const auto progress = receiver.decompress(sent.bytes(), room);
      ASSERT_TRUE(progress.has_value());
      EXPECT_EQ(to_text(Bytes(room).first(progress->produced)), event) << name_of(coding);
      EXPECT_FALSE(receiver.finish().has_value());
    }
    Buffer end;
    by.append({}, Flush::finish, end);
    EXPECT_EQ(receiver.decompress(end.bytes(), room)->produced, 0u);
    EXPECT_TRUE(receiver.finish().has_value());
  }
}

TEST(Compressor, BeginsANewContentAfterReset) {
  for (const Coding coding : available_codings()) {
    Compressor by = compressor({coding, 1});
    const std::string first = compressed(by, words(5000));
    by.reset();
    EXPECT_EQ(compressed(by, words(5000)), first);
    Buffer unfinished;
    by.reset();
    by.append(to_bytes("an unfinished content"), Flush::sync, unfinished);
    by.reset();
    EXPECT_EQ(compressed(by, words(5000)), first);
  }
}

TEST(Compressor, RejectsLevelsThatDoNotExist) {
  EXPECT_EQ(Compressor::make({Coding::identity, 1}).error(), Errc::bad_configuration);
  for (const Coding coding : available_codings()) {
    EXPECT_EQ(Compressor::make({coding, -1}).error(), Errc::bad_configuration);
    EXPECT_EQ(Compressor::make({coding, 20}).error(), Errc::bad_configuration);
  }
  for (const Coding coding : all_codings) {
    if (!is_available(coding)) {
      EXPECT_EQ(Compressor::make({coding, 1}).error(), Errc::unsupported);
    }
  }
}

TEST(Coding, HasTheNamesOfHeaders) {
  for (const Coding coding : all_codings) EXPECT_EQ(coding_of(name_of(coding)), coding);
  EXPECT_EQ(coding_of("X-GZIP"), Coding::gzip);
  EXPECT_EQ(coding_of("ZsTd"), Coding::zstd);
  EXPECT_EQ(coding_of("identity"), Coding::identity);
  for (const auto* name : {"", "gzi", "gzipp", "compress", "*", "Zst\x44\x20"}) {
    EXPECT_EQ(coding_of(name), std::nullopt);
  }
}

}  // namespace
}  // namespace weir::compression::compressor_test
