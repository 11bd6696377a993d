// Tests of HpackDecoder: the examples of RFC 7541 appendix C, invalid blocks and the limit.
#include "weir/http/detail/h2/hpack_decoder.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h2/huffman.hpp"
#include "weir/http/test/hpack_fixture.hpp"

namespace weir::http::hpack_decoder_test {
namespace {

using Step = HpackDecoder::Step;
using Fields = std::vector<TextField>;

struct Example {
  std::string_view block;
  Fields fields;
  Fields table;  ///< from the newest to the oldest field
  std::uint32_t table_size;
};

Fields fields_of(const HpackTable& table) {
  Fields fields;
  for (std::uint32_t index = 0; index < table.count(); ++index) {
    fields.push_back({std::string(table[index].name), std::string(table[index].value)});
  }
  return fields;
}

void expect_examples(const std::vector<Example>& examples, std::uint32_t size_max = 4096) {
  HpackTable table;
  table.set_size_max(size_max);
  for (const Example& each : examples) {
    const DecodedBlock decoded = decode_block(table, from_hex(each.block));
    EXPECT_EQ(decoded.end, Step::end) << each.block;
    EXPECT_EQ(decoded.fields, each.fields) << each.block;
    EXPECT_EQ(fields_of(table), each.table) << each.block;
    EXPECT_EQ(table.size(), each.table_size) << each.block;
  }
}

/// Returns a string literal without a Huffman code, of fewer than 127 bytes.
std::string literal(std::string_view text) {
  return static_cast<char>(text.size()) + std::string(text);
}

/// Returns a literal field whose first byte is `first`.
std::string literal_field(char first, std::string_view name, std::string_view value) {
  return first + literal(name) + literal(value);
}

/// Returns a string literal with a Huffman code of at least 127 bytes.
std::string coded_literal(std::string_view text) {
  std::string code(huffman_size(text), '\0');
  huffman_encode(text, code.data());
  std::string out = "\xff";
  std::size_t rest = code.size() - 127;
  for (; rest >= 128; rest >>= 7) out += static_cast<char>(rest | 128);
  return out + static_cast<char>(rest) + code;
}

DecodedBlock decode_hex(std::string_view block) {
  HpackTable table;
  return decode_block(table, from_hex(block));
}

TEST(HpackDecoder, DecodesEachRepresentation) {  // RFC 7541 C.2
  expect_examples({{"400a637573746f6d2d6b65790d637573746f6d2d686561646572",
                    {{"custom-key", "custom-header"}},
                    {{"custom-key", "custom-header"}},
                    55}});
  expect_examples({{"040c2f73616d706c652f70617468", {{":path", "/sample/path"}}, {}, 0}});
  expect_examples({{"100870617373776f726406736563726574", {{"password", "secret", true}}, {}, 0}});
  expect_examples({{"82", {{":method", "GET"}}, {}, 0}});
}

const Fields first_request{
    {":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "www.example.com"}};
const Fields second_request{{":method", "GET"},
                            {":scheme", "http"},
                            {":path", "/"},
                            {":authority", "www.example.com"},
                            {"cache-control", "no-cache"}};
const Fields third_request{{":method", "GET"},
                           {":scheme", "https"},
                           {":path", "/index.html"},
                           {":authority", "www.example.com"},
                           {"custom-key", "custom-value"}};
const Fields second_table{{"cache-control", "no-cache"}, {":authority", "www.example.com"}};
const Fields third_table{{"custom-key", "custom-value"},
                         {"cache-control", "no-cache"},
                         {":authority", "www.example.com"}};

TEST(HpackDecoder, DecodesRequestsWithoutHuffmanCodes) {  // RFC 7541 C.3
  expect_examples({
      {"828684410f7777772e6578616d706c652e636f6d",
       first_request,
       {{":authority", "www.example.com"}},
       57},
      {"828684be58086e6f2d6361636865", second_request, second_table, 110},
      {"828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", third_request, third_table,
       164},
  });
}

TEST(HpackDecoder, DecodesRequestsWithHuffmanCodes) {  // RFC 7541 C.4
  expect_examples({
      {"828684418cf1e3c2e5f23a6ba0ab90f4ff",
       first_request,
       {{":authority", "www.example.com"}},
       57},
      {"828684be5886a8eb10649cbf", second_request, second_table, 110},
      {"828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", third_request, third_table, 164},
  });
}

const TextField date_21{"date", "Mon, 21 Oct 2013 20:13:21 GMT"};
const TextField date_22{"date", "Mon, 21 Oct 2013 20:13:22 GMT"};
const TextField location{"location", "https://www.example.com"};
const TextField is_private{"cache-control", "private"};
const TextField cookie{"set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"};
const TextField gzip{"content-encoding", "gzip"};

std::vector<Example> responses(const std::vector<std::string_view>& blocks) {
  return {
      {blocks[0],
       {{":status", "302"}, is_private, date_21, location},
       {location, date_21, is_private, {":status", "302"}},
       222},
      {blocks[1],
       {{":status", "307"}, is_private, date_21, location},
       {{":status", "307"}, location, date_21, is_private},
       222},
      {blocks[2],
       {{":status", "200"}, is_private, date_22, location, gzip, cookie},
       {cookie, gzip, date_22},
       215},
  };
}

TEST(HpackDecoder, EvictsFieldsOfResponsesWithoutHuffmanCodes) {  // RFC 7541 C.5
  expect_examples(
      responses({"4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a32"
                 "3120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
                 "4803333037c1c0bf",
                 "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a6970"
                 "7738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d61"
                 "67653d333630303b2076657273696f6e3d31"}),
      256);
}

TEST(HpackDecoder, EvictsFieldsOfResponsesWithHuffmanCodes) {  // RFC 7541 C.6
  expect_examples(
      responses({"488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad"
                 "171863c78f0b97c8e9ae82ae43d3",
                 "4883640effc1c0bf",
                 "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2"
                 "e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007"}),
      256);
}

TEST(HpackDecoder, AcceptsAnEmptyBlock) {
  EXPECT_EQ(decode_hex("").end, Step::end);
}

TEST(HpackDecoder, RejectsAnIndexOutsideOfBothTables) {
  for (const std::string_view block : {"80", "be", "ff00", "ff8001", "ffffffff0f", "7e 01 61",
                                       "7f 00 01 61", "0f 2f 01 61", "1f 2f 01 61"}) {
    EXPECT_EQ(decode_hex(block).end, Step::error) << block;
  }
  HpackTable table;
  table.insert("a", "b");
  EXPECT_EQ(decode_block(table, from_hex("be")).fields, Fields({{"a", "b"}}));
  EXPECT_EQ(decode_block(table, from_hex("bf")).end, Step::error);
}

TEST(HpackDecoder, RejectsIntegersThatAreTooLarge) {
  for (const std::string_view block :
       {"ffffffffffff0f", "ff808080808000", "ffffffffff7f", "3fffffffff7f", "7fffffffff7f",
        "0fffffffff7f", "00ffffffffff7f", "0001 61 7fffffffff7f", "3f80808080808000"}) {
    EXPECT_EQ(decode_hex(block).end, Step::error) << block;
  }
  EXPECT_EQ(decode_hex("bd").end, Step::end);               // 61
  EXPECT_EQ(decode_hex("3fe19f808000 82").end, Step::end);  // 4,096 with bytes that add nothing
}

TEST(HpackDecoder, RejectsABlockThatEndsInTheMiddleOfAField) {
  for (const std::string_view block :
       {"ff", "ff80", "40", "400161", "40016101", "4001610262", "41", "4102 61", "00", "0f", "0f80",
        "1001", "3f", "3fe1", "007f", "007f80", "00ff", "0082 1f"}) {
    EXPECT_EQ(decode_hex(block).end, Step::error) << block;
  }
}

TEST(HpackDecoder, RejectsInvalidHuffmanCodes) {
  for (const std::string_view block :
       {"0081ff 0161", "00811e 0161", "000161 81ff", "000161 84ffffffff", "400161 811e"}) {
    EXPECT_EQ(decode_hex(block).end, Step::error) << block;
  }
  EXPECT_EQ(decode_hex("00811f 811f").fields, Fields({{"a", "a"}}));
  EXPECT_EQ(decode_hex("0080 80").fields, Fields({{"", ""}}));
}

TEST(HpackDecoder, AcceptsSizeUpdatesOnlyAtTheStart) {
  HpackTable table;
  EXPECT_EQ(decode_block(table, from_hex("3f9a0a")).end, Step::end);  // RFC 7541 C.1.2
  EXPECT_EQ(table.size_max(), 1337U);
  EXPECT_EQ(decode_block(table, from_hex("20 3fe11f 82")).end, Step::end);
  EXPECT_EQ(table.size_max(), 4096U);
  EXPECT_EQ(decode_block(table, from_hex("3fe21f")).end, Step::error);  // 4,097
  EXPECT_EQ(decode_block(table, from_hex("82 20")).end, Step::error);
  EXPECT_EQ(decode_block(table, from_hex("20 82 20 82")).end, Step::error);
  EXPECT_EQ(decode_block(table, from_hex("000161 0162 20")).end, Step::error);
}

TEST(HpackDecoder, GivesTheNameOfAFieldThatItsInsertionEvicts) {
  HpackTable table;
  table.set_size_max(70);
  const std::string long_name = "a-name-of-17-byte";
  table.insert(long_name, "value");
  const DecodedBlock decoded = decode_block(table, "\x7e" + literal("other") + "\xbe");
  EXPECT_EQ(decoded.fields, Fields({{long_name, "other"}, {long_name, "other"}}));
  const DecodedBlock too_large = decode_block(table, "\x7e" + literal(std::string(60, 'v')));
  EXPECT_EQ(too_large.fields, Fields({{long_name, std::string(60, 'v')}}));
  EXPECT_EQ(table.count(), 0U);
}

TEST(HpackDecoder, CountsEachFieldWithItsOverhead) {
  HpackTable table;
  EXPECT_EQ(decode_block(table, from_hex("82 84")).list_bytes, 32U + 10 + 32 + 6);
  EXPECT_EQ(decode_block(table, literal_field(0, "name", "value")).list_bytes, 32U + 9);
  EXPECT_EQ(decode_block(table, "").list_bytes, 0U);
}

TEST(HpackDecoder, GivesNoFieldBeyondTheLimit) {
  const std::string block =
      literal_field(0x40, "a", "1") + literal_field(0x40, "b", "2") + literal_field(0x40, "c", "3");
  for (std::uint32_t limit = 0; limit < 120; ++limit) {
    HpackTable table;
    const DecodedBlock decoded = decode_block(table, block, limit);
    ASSERT_EQ(decoded.end, Step::end);
    ASSERT_EQ(decoded.fields.size(), std::min(limit / 34, 3U)) << limit;
    ASSERT_EQ(decoded.exceeded, limit < 3 * 34) << limit;
    ASSERT_EQ(decoded.list_bytes, 3U * 34);
    ASSERT_EQ(fields_of(table), Fields({{"c", "3"}, {"b", "2"}, {"a", "1"}})) << limit;
  }
}

TEST(HpackDecoder, KeepsTheTableInStepBeyondTheLimit) {
  HpackTable limited;
  HpackTable whole;
  const std::string coded = coded_literal(std::string(5000, 'h'));
  for (const std::string& block :
       {literal_field(0x40, "a", "1") + "\x7e" + literal("2"), "\x7e" + coded + "\xbe",
        literal_field(0x40, "x", "y") + "\x7e" + literal("z"), '\0' + coded + coded + "\xbe",
        "\x40" + coded + literal("v") + literal_field(0x40, "l", "m"),
        literal_field(0, "no", "insertion") + "\xbe"}) {
    const DecodedBlock expected = decode_block(whole, block);
    const DecodedBlock decoded = decode_block(limited, block, 10);
    EXPECT_EQ(decoded.end, expected.end);
    EXPECT_TRUE(decoded.exceeded);
    EXPECT_TRUE(decoded.fields.empty());
    EXPECT_EQ(fields_of(limited), fields_of(whole));
  }
}

TEST(HpackDecoder, CountsATextThatIsLongerThanTheScratchMemory) {
  for (const std::uint32_t limit : {100U, 4096U, 5000U}) {
    HpackTable table;
    const std::string block = '\0' + coded_literal(std::string(6000, 'h')) + literal("v");
    const DecodedBlock decoded = decode_block(table, block, limit);
    EXPECT_EQ(decoded.end, Step::end);
    EXPECT_TRUE(decoded.exceeded);
    EXPECT_TRUE(decoded.fields.empty());
    EXPECT_EQ(decoded.list_bytes, HpackDecoder::scratch_size(limit) + 1);
  }
}

TEST(HpackDecoder, RejectsInvalidFieldsBeyondTheLimit) {
  for (const std::string_view bad : {"80", "ff00", "400161", "000161 84ffffffff", "20"}) {
    HpackTable table;
    EXPECT_EQ(decode_block(table, from_hex("82") + from_hex(bad), 10).end, Step::error) << bad;
  }
}

TEST(HpackDecoder, TakesTheWorkOfTheLimitForABomb) {
  // One field of 4,000 bytes and 16,000 references to it: 64 MB if all were copied.
  HpackTable table;
  const std::string value(3900, 'v');
  table.insert("bomb", value);
  const DecodedBlock decoded = decode_block(table, std::string(16'000, '\xbe'), 16 * 1024);
  EXPECT_EQ(decoded.end, Step::end);
  EXPECT_TRUE(decoded.exceeded);
  EXPECT_EQ(decoded.fields.size(), 4U);
  EXPECT_EQ(decoded.list_bytes, 16'000U * 3936);
}

}  // namespace
}  // namespace weir::http::hpack_decoder_test
