#include "weir/base/text/detail/protobuf_writer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace weir::detail::protobuf_writer_test {
namespace {

using std::string_view_literals::operator""sv;

// The expected bytes are those of the guide to the encoding of Protocol Buffers, or of protoc.
TEST(ProtobufWriter, WritesIntegersAsVarints) {
  ProtobufWriter writer;
  writer.add(1, std::uint64_t{150});
  EXPECT_EQ(writer.bytes(), "\x08\x96\x01"sv);
  writer.clear();
  writer.add_signed(1, -2);
  EXPECT_EQ(writer.bytes(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv);
  writer.clear();
  writer.add(16, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(writer.bytes(), "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv);
}

TEST(ProtobufWriter, WritesZigzagIntegers) {
  ProtobufWriter writer;
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1},
                                   std::int64_t{-2}, std::numeric_limits<std::int64_t>::min()}) {
    writer.append_zigzag(value);
  }
  EXPECT_EQ(writer.bytes(), "\x00\x01\x02\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv);
  writer.clear();
  writer.add_zigzag(2, -1);
  EXPECT_EQ(writer.bytes(), "\x10\x01"sv);
}

TEST(ProtobufWriter, WritesFixedNumbersInLittleEndian) {
  ProtobufWriter writer;
  writer.add_fixed64(1, 0x0102030405060708);
  writer.add(2, 1.0);
  EXPECT_EQ(writer.bytes(), "\x09\x08\x07\x06\x05\x04\x03\x02\x01\x11\0\0\0\0\0\0\xf0\x3f"sv);
  writer.clear();
  writer.add_fixed32(16, 0x01020304);
  writer.add_fixed32(17, 0);
  EXPECT_EQ(writer.bytes(), "\x85\x01\x04\x03\x02\x01"sv);
}

TEST(ProtobufWriter, WritesTextsAndNestedMessages) {
  ProtobufWriter inner;
  inner.add(1, std::uint64_t{150});
  ProtobufWriter writer;
  writer.add(2, "testing"sv);
  writer.add(3, inner);
  EXPECT_EQ(writer.bytes(), "\x12\x07testing\x1a\x03\x08\x96\x01"sv);
}

TEST(ProtobufWriter, LeavesDefaultsOut) {
  ProtobufWriter writer;
  writer.add(1, std::uint64_t{0});
  writer.add(2, 0.0);
  writer.add(3, ""sv);
  writer.add_zigzag(4, 0);
  writer.add_fixed64(5, 0);
  EXPECT_EQ(writer.bytes(), "");
  writer.add_always(1, std::uint64_t{0});
  writer.add_always(2, ""sv);
  writer.add(3, ProtobufWriter());
  EXPECT_EQ(writer.bytes(), "\x08\x00\x12\x00\x1a\x00"sv);
}

}  // namespace
}  // namespace weir::detail::protobuf_writer_test
