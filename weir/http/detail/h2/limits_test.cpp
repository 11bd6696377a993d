// Tests of the ranges of the limits of HTTP/2.
#include "weir/http/detail/h2/limits.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace weir::http::h2_limits_test {
namespace {

TEST(H2LimitsRange, DefaultsAreWithinTheirRanges) {
  const H2Limits limits;
  const H2Limits out = in_range(limits);
  EXPECT_EQ(out.streams_max, limits.streams_max);
  EXPECT_EQ(out.stream_window, limits.stream_window);
  EXPECT_EQ(out.connection_window, limits.connection_window);
  EXPECT_EQ(out.block_bytes_max, limits.block_bytes_max);
  EXPECT_EQ(out.block_frames_max, limits.block_frames_max);
  EXPECT_EQ(out.field_list_max, limits.field_list_max);
  EXPECT_EQ(out.control_bytes_max, limits.control_bytes_max);
  EXPECT_EQ(out.output_max, limits.output_max);
}

TEST(H2LimitsRange, RaisesValuesThatAreTooSmall) {
  const H2Limits out = in_range({.streams_max = 0,
                                 .stream_window = 0,
                                 .connection_window = 0,
                                 .block_bytes_max = 0,
                                 .block_frames_max = 0,
                                 .field_list_max = 0,
                                 .control_bytes_max = 0,
                                 .output_max = 0,
                                 .work = {.burst = 0, .refill_per_second = 0}});
  EXPECT_EQ(out.streams_max, 1u);
  EXPECT_EQ(out.stream_window, 1u);
  EXPECT_EQ(out.connection_window, window_default);
  EXPECT_EQ(out.block_bytes_max, 1024u);
  EXPECT_EQ(out.block_frames_max, 1u);
  EXPECT_EQ(out.control_bytes_max, 256u);
  EXPECT_EQ(out.output_max, 1u);
  EXPECT_EQ(out.work.burst, 100);
  EXPECT_EQ(out.work.refill_per_second, 1);
}

TEST(H2LimitsRange, LowersValuesThatAreTooLarge) {
  constexpr std::uint32_t huge = std::numeric_limits<std::uint32_t>::max();
  const H2Limits out = in_range({.streams_max = huge,
                                 .stream_window = huge,
                                 .connection_window = huge,
                                 .block_bytes_max = huge,
                                 .block_frames_max = huge,
                                 .field_list_max = huge});
  EXPECT_EQ(out.streams_max, 1u << 30);
  EXPECT_EQ(out.stream_window, window_max);
  EXPECT_EQ(out.connection_window, window_max);
  EXPECT_EQ(out.block_bytes_max, 16u * 1024 * 1024);
  EXPECT_EQ(out.block_frames_max, 0xFFFEu);
  EXPECT_EQ(out.field_list_max, 16u * 1024 * 1024);
}

TEST(H2LimitsRange, LetsABlockHoldTheAnnouncedFieldList) {
  const H2Limits out =
      in_range({.block_bytes_max = 1024, .block_frames_max = 1, .field_list_max = 100'000});
  EXPECT_EQ(out.block_bytes_max, 100'000u);
  EXPECT_EQ(out.block_frames_max, 7u) << "frames of 16 KiB";
}

TEST(H2LimitsRange, HeldStreamsExceedTheOpenOnesByAQuarter) {
  EXPECT_EQ(streams_held_max({.streams_max = 100}), 126u);
  EXPECT_EQ(streams_held_max({.streams_max = 1}), 2u);
}

}  // namespace
}  // namespace weir::http::h2_limits_test
