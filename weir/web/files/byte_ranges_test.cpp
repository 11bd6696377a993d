// Tests of byte ranges: the examples and rules of RFC 9110 §14.
#include "weir/web/files/byte_ranges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::http::byte_ranges_test {
namespace {

using Ranges = std::vector<ByteRange>;
using Kind = SelectedRanges::Kind;
using testing::IsEmpty;

Ranges partial(std::string_view header, std::uint64_t size = 10'000) {
  const SelectedRanges selected = select_ranges(header, size);
  EXPECT_EQ(selected.kind, Kind::partial) << header;
  return selected.ranges;
}

Kind kind_of(std::string_view header, std::uint64_t size = 10'000) {
  return select_ranges(header, size).kind;
}

// RFC 9110 §14.1.2, for a representation of 10000 bytes.
TEST(ByteRanges, AreThoseOfTheExamplesOfTheRfc) {
  EXPECT_EQ(partial("bytes=0-499"), (Ranges{{0, 500}}));
  EXPECT_EQ(partial("bytes=500-999"), (Ranges{{500, 500}}));
  EXPECT_EQ(partial("bytes=-500"), (Ranges{{9500, 500}}));
  EXPECT_EQ(partial("bytes=9500-"), (Ranges{{9500, 500}}));
  EXPECT_EQ(partial("bytes=0-0,-1"), (Ranges{{0, 1}, {9999, 1}}));
  EXPECT_EQ(partial("bytes= 0-999, 4500-5499, -1000"),
            (Ranges{{0, 1000}, {4500, 1000}, {9000, 1000}}));
  EXPECT_EQ(partial("bytes=500-600,601-999"), (Ranges{{500, 500}}));
  EXPECT_EQ(partial("bytes=500-700,601-999"), (Ranges{{500, 500}}));
}

TEST(ByteRanges, EndWithTheRepresentation) {
  EXPECT_EQ(partial("bytes=9990-20000"), (Ranges{{9990, 10}}));
  EXPECT_EQ(partial("bytes=0-"), (Ranges{{0, 10'000}}));
  EXPECT_EQ(partial("bytes=-20000"), (Ranges{{0, 10'000}}));
  EXPECT_EQ(partial("bytes=9999-18446744073709551616"), (Ranges{{9999, 1}}));
  EXPECT_EQ(partial("bytes=-99999999999999999999999"), (Ranges{{0, 10'000}}));
  EXPECT_EQ(partial("bytes=0-0", 1), (Ranges{{0, 1}}));
}

TEST(ByteRanges, AreUnsatisfiableBehindTheEnd) {
  EXPECT_EQ(kind_of("bytes=10000-"), Kind::unsatisfiable);
  EXPECT_EQ(kind_of("bytes=10000-10001, -0"), Kind::unsatisfiable);
  EXPECT_EQ(kind_of("bytes=99999999999999999999999-"), Kind::unsatisfiable);
  EXPECT_EQ(kind_of("bytes=0-0", 0), Kind::unsatisfiable);
  EXPECT_EQ(kind_of("bytes=-1", 0), Kind::whole);
  EXPECT_EQ(partial("bytes=10000-, 0-1"), (Ranges{{0, 2}}));
}

TEST(ByteRanges, AreIgnoredIfTheHeaderIsMalformed) {
  for (const auto* header :
       {"", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=a-b", "bytes=5-4", "bytes=0-1,5-4",
        "bytes=0", "bytes=0-1-2", "bytes=+1-2", "bytes=0x0-1", "bytes=1 -2", "bytes=--1",
        "items=0-1", "bytes 0-1", "bytes=0-1;x", "bytes=0-1, bytes=2-3"}) {
    EXPECT_EQ(kind_of(header), Kind::whole) << header;
  }
  EXPECT_EQ(partial("BYTES=0-1,,\t5000-5001 ,"), (Ranges{{0, 2}, {5000, 2}}));
}

TEST(ByteRanges, AreMergedIfTheyOverlapOrAreClose) {
  EXPECT_EQ(partial("bytes=5000-5009, 0-9, 5-19"), (Ranges{{0, 20}, {5000, 10}}));
  EXPECT_EQ(partial("bytes=0-9, 90-99"), (Ranges{{0, 100}}));
  EXPECT_EQ(partial("bytes=0-9, 91-99"), (Ranges{{0, 10}, {91, 9}}));
  EXPECT_EQ(partial("bytes=0-99, 10-19"), (Ranges{{0, 100}}));
}

TEST(ByteRanges, KeepTheOrderOfTheClientIfNoneIsMerged) {
  EXPECT_EQ(partial("bytes=5000-5009, 0-9"), (Ranges{{5000, 10}, {0, 10}}));
}

TEST(ByteRanges, AreIgnoredIfThereAreTooManyOrTheySelectEverything) {
  std::string most = "bytes=0-0";
  for (int each = 1; each < 16; ++each) most += "," + std::to_string(each * 200) + "-";
  EXPECT_EQ(kind_of(most), Kind::partial);
  EXPECT_EQ(kind_of(most + ",9999-"), Kind::whole);
  EXPECT_EQ(kind_of("bytes=0-4999,5000-9999"), Kind::whole);
}

TEST(ByteRanges, AreDescribedInHeaders) {
  EXPECT_EQ(content_range({0, 500}, 10'000), "bytes 0-499/10000");
  EXPECT_EQ(unsatisfied_range(47'022), "bytes */47022");
}

TEST(RangeParts, WritesTheHeadsOfAMultipartBody) {
  const RangeParts parts("B", "text/plain", 100);
  const Ranges ranges{{0, 2}, {98, 2}};
  EXPECT_EQ(parts.content_type(), "multipart/byteranges; boundary=B");
  const std::string body =
      parts.head(ranges[0]) + "ab" + parts.head(ranges[1]) + "yz" + parts.end();
  EXPECT_EQ(body,
            "\r\n--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/100\r\n\r\nab"
            "\r\n--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 98-99/100\r\n\r\nyz"
            "\r\n--B--\r\n");
  EXPECT_EQ(parts.length(ranges), body.size());
  EXPECT_EQ(RangeParts("B", "", 100).head(ranges[0]),
            "\r\n--B\r\nContent-Range: bytes 0-1/100\r\n\r\n");
}

}  // namespace
}  // namespace weir::http::byte_ranges_test
