// Tests of the encoder of HPACK. The decoder and hpack_judge_test.cpp read what it writes.
#include "weir/http/detail/h2/hpack_encoder.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/hpack_fixture.hpp"

namespace weir::http::hpack_encoder_test {
namespace {

std::string encode(std::string_view name, std::string_view value,
                   HpackIndexing indexing = HpackIndexing::allowed) {
  std::vector<char> out(hpack_field_size_max(name, value));
  char* const end = write_hpack_field(name, value, out.data(), indexing);
  return {out.data(), end};
}

std::vector<TextField> decode(std::string_view block) {
  HpackTable table;
  const DecodedBlock decoded = decode_block(table, block);
  EXPECT_EQ(decoded.end, HpackDecoder::Step::end);
  EXPECT_EQ(table.memory(), 0U);
  return decoded.fields;
}

TEST(HpackEncoder, WritesAFieldOfTheStaticTableAsItsIndex) {
  for (std::size_t index = 1; index <= hpack_static_fields.size(); ++index) {
    const HeaderField& field = hpack_static_fields[index - 1];
    EXPECT_EQ(encode(field.name, field.value), std::string(1, static_cast<char>(0x80 | index)));
  }
}

TEST(HpackEncoder, WritesANameOfTheStaticTableAsItsIndex) {
  EXPECT_EQ(encode(":path", "/sample/path"), from_hex("04 89 6103a6ba0ac5634cff"));
  EXPECT_EQ(encode("Server", "~"), from_hex("0f27 01 7e"));
  EXPECT_EQ(encode("content-length", "13"), from_hex("0f0d 02 3133"));
  EXPECT_EQ(encode(":status", "302"), from_hex("08 82 6402"));
}

TEST(HpackEncoder, WritesNamesInLowerCase) {
  EXPECT_EQ(decode(encode("X-Request-ID", "Abc")),
            std::vector<TextField>({{"x-request-id", "Abc"}}));
  EXPECT_EQ(decode(encode("Content-Type", "A/B")),
            std::vector<TextField>({{"content-type", "A/B"}}));
  EXPECT_EQ(encode("~A", ""), from_hex("00 02 7e61 00"));  // a Huffman code is longer
}

TEST(HpackEncoder, WritesEmptyTexts) {
  EXPECT_EQ(encode("", ""), from_hex("00 00 00"));
  EXPECT_EQ(encode("", "a"), from_hex("00 00 01 61"));
  EXPECT_EQ(encode("a", ""), from_hex("00 01 61 00"));
}

TEST(HpackEncoder, UsesHuffmanCodesOnlyWhereTheyAreShorter) {
  EXPECT_EQ(encode("a", "b"), from_hex("00 01 61 01 62"));
  EXPECT_EQ(encode("aaa", "bbb"), from_hex("00 82 18c7 03 626262"));
  EXPECT_EQ(encode("n", std::string(200, '~')).size(), 1U + 2 + 2 + 200);
}

TEST(HpackEncoder, MarksFieldsThatMustNotBeIndexed) {
  const auto never = HpackIndexing::never;
  EXPECT_EQ(encode("password", "secret", never)[0], 0x10);
  EXPECT_EQ(decode(encode("password", "secret", never)),
            std::vector<TextField>({{"password", "secret", true}}));
  EXPECT_EQ(decode(encode("Authorization", "", never)),
            std::vector<TextField>({{"authorization", "", true}}));
}

TEST(HpackEncoder, WritesEachStatus) {
  for (int code = 100; code < 600; ++code) {
    char out[hpack_status_size_max];
    const char* const end = write_hpack_status(static_cast<Status>(code), out);
    EXPECT_EQ(decode(std::string_view(out, static_cast<std::size_t>(end - out))),
              std::vector<TextField>({{":status", std::to_string(code)}}));
    EXPECT_EQ(end - out == 1, code == 200 || code == 204 || code == 206 || code == 304 ||
                                  code == 400 || code == 404 || code == 500);
  }
}

TEST(HpackEncoder, WritesTextsOfAllSizes) {
  for (const char letter : {'a', '~'}) {
    for (std::size_t size = 0; size < 600; ++size) {
      const std::string name = "n" + std::string(size, letter);
      const std::string value(600 - size, letter);
      ASSERT_EQ(decode(encode(name, value)), std::vector<TextField>({{name, value}}));
    }
    const std::string large(50'000, letter);
    EXPECT_EQ(decode(encode("large", large)), std::vector<TextField>({{"large", large}}));
  }
}

std::string size_update(HpackEncoderState& encoder) {
  char out[HpackEncoderState::size_update_max];
  return {out, encoder.write_size_update(out)};
}

TEST(HpackEncoderState, WritesASizeUpdateOnceAfterThePeerHasLoweredItsTable) {
  HpackEncoderState encoder;
  EXPECT_EQ(size_update(encoder), "");
  encoder.set_peer_size_max(4096);
  encoder.set_peer_size_max(65536);
  EXPECT_EQ(size_update(encoder), "");
  encoder.set_peer_size_max(4095);
  encoder.set_peer_size_max(4096);
  EXPECT_EQ(size_update(encoder), "\x20");
  EXPECT_EQ(size_update(encoder), "");
  encoder.set_peer_size_max(0);
  encoder.set_peer_size_max(100);
  EXPECT_EQ(size_update(encoder), "");
}

}  // namespace
}  // namespace weir::http::hpack_encoder_test
