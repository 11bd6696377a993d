// Tests of random bytes.
#include "weir/tls/crypto/detail/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/base/detail/random_source.hpp"

namespace weir::tls::detail::random_test {
namespace {

using Room = std::array<std::byte, 20>;

Room random() {
  Room room{};
  EXPECT_TRUE(fill_random(room));
  return room;
}

TEST(Random, DrawsOtherBytesEachTime) {
  EXPECT_NE(random(), random());
  EXPECT_NE(random(), Room{});
}

TEST(Random, ComesFromTheSimulationOfTheThread) {
  struct Counter final : weir::detail::RandomSource {
    std::uint64_t random() noexcept override { return ++next; }
    std::uint64_t next = 0;
  };
  Counter first;
  Counter second;
  Room rooms[2];
  {
    const weir::detail::RandomSource::Use use(first);
    rooms[0] = random();
  }
  {
    const weir::detail::RandomSource::Use use(second);
    rooms[1] = random();
  }
  EXPECT_EQ(rooms[0], rooms[1]);
  EXPECT_EQ(rooms[0][0], std::byte{1});
  EXPECT_NE(random(), rooms[0]);
}

}  // namespace
}  // namespace weir::tls::detail::random_test
