#include "weir/app/log_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "weir/log/detail/record.hpp"

namespace weir {
namespace {

/// Bytes that begin with their size, as records do.
std::vector<std::byte> sized(std::size_t size, int fill) {
  std::vector<std::byte> bytes(size, static_cast<std::byte>(fill));
  const auto written = static_cast<std::uint32_t>(size);
  std::memcpy(bytes.data(), &written, sizeof written);
  return bytes;
}

TEST(LogRing, GivesRecordsInTheirOrder) {
  LogRing ring(0, 3);
  EXPECT_EQ(ring.number(), 3u);
  std::vector<std::byte> taken;
  std::size_t pushed = 0;
  std::size_t received = 0;
  const auto size_of = [](std::size_t index) { return 4 + index * 37 % 2000; };
  for (int round = 0; round < 2000; ++round) {
    for (int burst = round % 4; burst >= 0; --burst) {
      ring.push(sized(size_of(pushed), static_cast<int>(pushed % 256)));
      ++pushed;
    }
    EXPECT_FALSE(ring.empty());
    EXPECT_FALSE(ring.take(taken)) << "what is not marked is not there yet";
    ring.mark();
    while (ring.take(taken)) {
      ASSERT_EQ(taken, sized(size_of(received), static_cast<int>(received % 256)));
      ++received;
    }
    EXPECT_TRUE(ring.empty());
  }
  EXPECT_EQ(received, pushed);
  EXPECT_EQ(ring.dropped().value(), 0u);
}

TEST(LogRing, DropsWhatDoesNotFitAndCounts) {
  LogRing ring(0, 0);  // 8 KiB
  for (int record = 0; record < 10; ++record) ring.push(sized(1024, record));
  EXPECT_EQ(ring.dropped().value(), 2u);
  std::vector<std::byte> taken;
  ring.mark();
  for (int record = 0; record < 8; ++record) {
    ASSERT_TRUE(ring.take(taken));
    EXPECT_EQ(taken, sized(1024, record));
  }
  EXPECT_FALSE(ring.take(taken));
  ring.push(sized(1024, 42));
  ring.mark();
  ASSERT_TRUE(ring.take(taken));
  EXPECT_EQ(taken, sized(1024, 42));
}

TEST(LogRing, NothingIsLostBetweenTwoThreads) {
  constexpr std::uint64_t count = 100'000;
  LogRing ring(16 * 1024, 0);
  std::thread pusher([&] {
    for (std::uint64_t number = 0; number < count; ++number) {
      auto bytes = sized(12 + number % 100, 0);
      std::memcpy(bytes.data() + 4, &number, sizeof number);
      ring.push(bytes);
    }
  });
  std::vector<std::byte> taken;
  std::uint64_t received = 0;
  std::uint64_t next = 0;
  // The last number may be dropped: then the counts tell the end.
  while (received + ring.dropped().value() < count) {
    ring.mark();
    while (ring.take(taken)) {
      std::uint64_t number = 0;
      std::memcpy(&number, taken.data() + 4, sizeof number);
      ASSERT_GE(number, next);
      ASSERT_EQ(taken.size(), 12 + number % 100);
      next = number + 1;
      ++received;
    }
    std::this_thread::yield();
  }
  pusher.join();
  EXPECT_EQ(received + ring.dropped().value(), count);
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace weir
