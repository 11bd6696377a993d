// Tests how durations and sizes are parsed and printed.
#include "weir/json/text/units.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>

namespace weir::json::units_test {
namespace {

TEST(Units, ParsesDurations) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("5s"), 5s);
  EXPECT_EQ(parse_duration("0s"), 0s);
  EXPECT_EQ(parse_duration("7ns"), 7ns);
  EXPECT_EQ(parse_duration("12us"), 12us);
  EXPECT_EQ(parse_duration("3min"), 3min);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("10d"), 240h);
  EXPECT_EQ(parse_duration("1h30min"), 90min);
  EXPECT_EQ(parse_duration("1d2h3min4s5ms6us7ns"), 26h + 3min + 4s + 5ms + 6us + 7ns);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("0.000000001s"), 1ns);
  EXPECT_EQ(parse_duration("0.25h0.5s"), 15min + 500ms);
  EXPECT_EQ(parse_duration("1.0ns"), 1ns);
}

TEST(Units, RejectsInvalidDurations) {
  for (const char* const text : {"",      "5",      "s",    "5 s",   " 5s",
                                 "5s ",   "-5s",    "+5s",  "5sec",  "5S",
                                 "5m",    "5M",     "1.5",  ".5s",   "1.s",
                                 "1..5s", "1.5.5s", "5s5s", "5s1h",  "1ms1s",
                                 "1e3s",  "0x5s",   "5s,",  "1.5ns", "0.0000000001s",
                                 "five",  "5:s",    "5/s",  "5s\n",  "123456789012345678901ns",
                                 "nan",   "inf"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_duration(std::string_view("5s\0", 3)), std::nullopt);
}

TEST(Units, TheLongestDurationIsExact) {
  EXPECT_EQ(parse_duration("9223372036854775807ns"), Duration::max());
  EXPECT_EQ(parse_duration("9223372036854775808ns"), std::nullopt);
  EXPECT_EQ(parse_duration("106751d23h47min16s854ms775us807ns"), Duration::max());
  EXPECT_EQ(parse_duration("106751d23h47min16s854ms775us808ns"), std::nullopt);
  EXPECT_EQ(parse_duration("99999999999999999999d"), std::nullopt);
}

TEST(Units, CountsTicksOfAnyLength) {
  constexpr std::uint64_t minute = 60'000'000'000;
  constexpr std::uint64_t most = ~std::uint64_t{0};
  EXPECT_EQ(detail::parse_ticks("1h30min", minute, most), 90U);
  EXPECT_EQ(detail::parse_ticks("90s", minute, most), std::nullopt) << "one and a half";
  EXPECT_EQ(detail::parse_ticks("4min", minute, 4), 4U);
  EXPECT_EQ(detail::parse_ticks("5min", minute, 4), std::nullopt);
  EXPECT_EQ(detail::parse_ticks("18446744073709551615min", minute, most), most);
  EXPECT_EQ(detail::parse_ticks("18446744073709551616min", minute, most), std::nullopt);
  EXPECT_EQ(detail::ticks_text(0, minute), "0s");
  EXPECT_EQ(detail::ticks_text(90, minute), "90min");
  EXPECT_EQ(detail::ticks_text(2880, minute), "2d");
  EXPECT_EQ(detail::ticks_text(most, minute), "18446744073709551615min");
}

TEST(Units, ParsesSizes) {
  EXPECT_EQ(parse_byte_size("64KiB"), 64_KiB);
  EXPECT_EQ(parse_byte_size("64kB"), ByteSize(64'000));
  EXPECT_EQ(parse_byte_size("1.5MiB"), ByteSize(1'572'864));
  EXPECT_EQ(parse_byte_size("7MB"), ByteSize(7'000'000));
  EXPECT_EQ(parse_byte_size("2GB"), ByteSize(2'000'000'000));
  EXPECT_EQ(parse_byte_size("3GiB"), 3_GiB);
  EXPECT_EQ(parse_byte_size("1TiB1TB"), ByteSize(1'099'511'627'776 + 1'000'000'000'000));
  EXPECT_EQ(parse_byte_size("12B"), 12_B);
  EXPECT_EQ(parse_byte_size("0"), 0_B);
  EXPECT_EQ(parse_byte_size("1000"), ByteSize(1000));
  EXPECT_EQ(parse_byte_size("18446744073709551615"), ByteSize(~std::uint64_t{0}));
  EXPECT_EQ(parse_byte_size("18446744073709551615B"), ByteSize(~std::uint64_t{0}));
  EXPECT_EQ(parse_byte_size("16777215TiB1023GiB"), ByteSize(0xFFFF'FFFF'C000'0000));
}

TEST(Units, RejectsInvalidSizes) {
  for (const char* const text : {"",
                                 "B",
                                 "KiB",
                                 "64K",
                                 "64k",
                                 "64M",
                                 "64kib",
                                 "64KIB",
                                 "64KB",
                                 "64 KiB",
                                 "-1",
                                 "+1",
                                 "-1B",
                                 "1.5",
                                 "0.5B",
                                 "1KiB5",
                                 "1KiB1MiB",
                                 "18446744073709551616",
                                 "18446744073709551616B",
                                 "16777216TiB",
                                 "1e3",
                                 "0x10",
                                 "1_000",
                                 "1:",
                                 "1/",
                                 "64KiB\n"}) {
    EXPECT_EQ(parse_byte_size(text), std::nullopt) << text;
  }
}

TEST(Units, WritesTheLargestWholeUnit) {
  EXPECT_EQ(to_text(Duration(0)), "0s");
  EXPECT_EQ(to_text(Duration(90s)), "90s");
  EXPECT_EQ(to_text(Duration(1h)), "1h");
  EXPECT_EQ(to_text(Duration(36h)), "36h");
  EXPECT_EQ(to_text(Duration(48h)), "2d");
  EXPECT_EQ(to_text(Duration(1500us)), "1500us");
  EXPECT_EQ(to_text(Duration(-250ms)), "-250ms");
  EXPECT_EQ(to_text(Duration::min()), "-9223372036854775808ns");
  EXPECT_EQ(to_text(0_B), "0B");
  EXPECT_EQ(to_text(64_KiB), "64KiB");
  EXPECT_EQ(to_text(ByteSize(1'024'000)), "1000KiB");
  EXPECT_EQ(to_text(ByteSize(1000)), "1kB");
  EXPECT_EQ(to_text(ByteSize(1'500'000)), "1500kB");
  EXPECT_EQ(to_text(ByteSize(1500)), "1500B");
}

TEST(Units, LiteralsHaveUnitsOf1024) {
  EXPECT_EQ(ByteSize().bytes(), 0U);
  EXPECT_EQ((3_B).bytes(), 3U);
  EXPECT_EQ((3_KiB).bytes(), 3U * 1024);
  EXPECT_EQ((3_MiB).bytes(), 3U * 1024 * 1024);
  EXPECT_EQ((3_GiB).bytes(), 3ULL * 1024 * 1024 * 1024);
}

TEST(Units, PrintedValuesParseAgain) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    // Covers all magnitudes, and many whole units.
    std::uint64_t number = random() >> (random() % 64);
    if (round % 2 == 0) number -= number % 1'000'000;
    EXPECT_EQ(parse_byte_size(to_text(ByteSize(number))), ByteSize(number)) << number;
    const Duration length(static_cast<Duration::rep>(number >> 1));
    EXPECT_EQ(parse_duration(to_text(length)), length) << number;
  }
}

}  // namespace
}  // namespace weir::json::units_test
