// Tests of HostLineCache.
#include "weir/http/detail/h1/host_line_cache.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace weir::http::host_line_cache_test {
namespace {

/// Returns a line of `size` bytes, "Host: hhh...".
std::string line_of(std::size_t size) {
  const std::string start = "Host: ";
  return start + std::string(size - start.size() - 2, 'h') + "\r\n";
}

void store(HostLineCache& cache, std::string_view line) {
  cache.store(line, line.substr(0, 4), line.substr(6, line.size() - 8));
}

/// Asks for a copy of exactly these bytes, so that the address sanitizer detects an overrun.
bool matches(const HostLineCache& cache, std::string_view text) {
  const std::unique_ptr<char[]> bytes(new char[text.size()]);
  if (!text.empty()) std::memcpy(bytes.get(), text.data(), text.size());
  return cache.matches({bytes.get(), text.size()});
}

TEST(HostLineCache, MatchesNothingWhenItIsEmpty) {
  const HostLineCache cache;
  EXPECT_FALSE(matches(cache, ""));
  EXPECT_FALSE(matches(cache, std::string(100, '\0')));
  EXPECT_FALSE(matches(cache, line_of(20)));
  EXPECT_EQ(cache.line_size(), 0U);
}

TEST(HostLineCache, MatchesATextThatBeginsWithTheStoredLine) {
  for (std::size_t size = 8; size <= HostLineCache::line_max; ++size) {
    HostLineCache cache;
    const std::string line = line_of(size);
    store(cache, line);
    EXPECT_EQ(cache.line_size(), size);
    EXPECT_EQ(cache.name_size(), 4U);
    EXPECT_EQ(cache.value_offset(), 6U);
    EXPECT_EQ(cache.value_size(), size - 8);
    EXPECT_TRUE(matches(cache, line)) << size;
    EXPECT_TRUE(matches(cache, line + "X: y\r\n")) << size;
    EXPECT_FALSE(matches(cache, std::string_view(line).substr(0, size - 1))) << size;
    EXPECT_FALSE(matches(cache, "")) << size;
  }
}

TEST(HostLineCache, ComparesEveryByte) {
  for (std::size_t size = 8; size <= HostLineCache::line_max; ++size) {
    HostLineCache cache;
    store(cache, line_of(size));
    for (std::size_t index = 0; index < size; ++index) {
      std::string other = line_of(size);
      other[index] = static_cast<char>(other[index] ^ 1);
      EXPECT_FALSE(matches(cache, other)) << size << ", " << index;
    }
  }
}

TEST(HostLineCache, KeepsItsLineIfAnotherIsTooShortOrTooLong) {
  HostLineCache cache;
  const std::string kept = line_of(30);
  store(cache, kept);
  const std::string_view too_short = "Host:\r\n";
  cache.store(too_short, too_short.substr(0, 4), too_short.substr(5, 0));
  EXPECT_TRUE(matches(cache, kept));
  EXPECT_FALSE(matches(cache, "Host:\r\nX: y\r\n"));
  store(cache, line_of(HostLineCache::line_max + 1));
  EXPECT_TRUE(matches(cache, kept));
  EXPECT_EQ(cache.line_size(), 30U);
  EXPECT_EQ(HostLineCache::line_max, 64U);
}

TEST(HostLineCache, ReplacesItsLine) {
  HostLineCache cache;
  store(cache, line_of(40));
  store(cache, line_of(12));
  EXPECT_TRUE(matches(cache, line_of(12)));
  EXPECT_FALSE(matches(cache, line_of(40)));
}

}  // namespace
}  // namespace weir::http::host_line_cache_test
