// Tests of Writer: numbers, strings, chunks and allocations.
#include "weir/json/detail/writer.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "weir/json/read.hpp"
#include "weir/json/write.hpp"

namespace weir::json::writer_test {
namespace {

TEST(Writer, WritesIntegers) {
  EXPECT_EQ(write(0), "0");
  EXPECT_EQ(write(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(write(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(write(std::int8_t{-128}), "-128");
  EXPECT_EQ(write(std::uint8_t{65}), "65");
}

TEST(Writer, DoublesAreShortAndNeverIntegers) {
  EXPECT_EQ(write(0.1), "0.1");
  EXPECT_EQ(write(20.0), "20.0");
  EXPECT_EQ(write(-0.0), "-0.0");
  EXPECT_EQ(write(1e100), "1e+100");
  EXPECT_EQ(write(5e-324), "5e-324");
  EXPECT_EQ(write(0.1F), "0.1");
  EXPECT_EQ(write(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
  EXPECT_EQ(write(std::nan("")), "null");
  EXPECT_EQ(write(-HUGE_VAL), "null");
}

TEST(Writer, EveryDoubleComesBack) {
  const std::uint64_t seed = 20'241'121;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const auto back = read<double>(write(value));
    ASSERT_TRUE(back) << write(value) << " seed " << seed;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(*back), std::bit_cast<std::uint64_t>(value)) << seed;
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(single)) continue;
    ASSERT_EQ(read<float>(write(single)), single) << write(single) << " seed " << seed;
  }
}

TEST(Writer, EscapesSpecialCharacters) {
  EXPECT_EQ(write(std::string("a\"b\\c/d")), R"("a\"b\\c/d")");
  EXPECT_EQ(write(std::string("\b\f\n\r\t")), R"("\b\f\n\r\t")");
  EXPECT_EQ(write(std::string("\0\x01\x1f\x7f", 4)), "\"\\u0000\\u0001\\u001f\x7f\"");
  EXPECT_EQ(write(std::string("ä€\U0001D11E")), "\"ä€\U0001D11E\"");
  EXPECT_EQ(write(std::string_view("view")), "\"view\"");
  EXPECT_EQ(write(static_cast<const char*>("pointer")), "\"pointer\"");
  EXPECT_EQ(write(std::string()), "\"\"");
}

TEST(Writer, ReplacesInvalidUtf8) {
  EXPECT_EQ(write(std::string("\xff")), "\"\uFFFD\"");
  EXPECT_EQ(write(std::string("a\xC3")), "\"a\uFFFD\"");
  EXPECT_EQ(write(std::string("\xED\xA0\x80z")), "\"\uFFFD\uFFFD\uFFFDz\"");
  EXPECT_EQ(write(std::string("ä\x80ä\xF0\x9F\x98")), "\"ä\uFFFDä\uFFFD\uFFFD\uFFFD\"");
}

TEST(Writer, PrintableTextsHaveNoControlCharacters) {
  const auto printable = [](std::string_view text) {
    std::string out(">");
    append_printable(out, text);
    return out;
  };
  EXPECT_EQ(printable("a\"b\\\n\x1f\x7f~"), R"(>"a\"b\\\n\u001f\u007f~")");
  EXPECT_EQ(printable("\xC2\x80\xC2\x85\xC2\x9F"), R"(>"\u0080\u0085\u009f")");
  EXPECT_EQ(printable("\xC2\xA0\xC3\x80\xC3\x9F"), ">\"\xC2\xA0\xC3\x80\xC3\x9F\"");
  EXPECT_EQ(printable("\x9F\xC2"), ">\"\uFFFD\uFFFD\"");
  EXPECT_EQ(printable("\xE2\x80\xAE\xE2\x80\xA8"), R"(>"\u202e\u2028")");
}

TEST(Writer, WritesTextsOfEveryLengthWithEveryCharacter) {
  for (std::size_t size = 0; size < 50; ++size) {
    const std::string plain(size, 'x');
    ASSERT_EQ(write(plain), "\"" + plain + "\"");
    for (std::size_t place = 0; place < size; ++place) {
      for (int byte = 0; byte < 128; ++byte) {
        std::string text = plain;
        text[place] = static_cast<char>(byte);
        const auto back = read<std::string>(write(text));
        ASSERT_TRUE(back) << write(text);
        ASSERT_EQ(*back, text);
      }
    }
  }
}

TEST(Writer, FlushesFullChunks) {
  // The texts cross the ends of chunks, in pieces shorter and longer than a chunk.
  for (const std::size_t size : {1000u, 1020u, 1021u, 1022u, 1023u, 1024u, 1025u, 3000u}) {
    const std::vector<std::string> texts{std::string(size, 'a'), "\n", std::string(size, 'b'),
                                         "ccccc"};
    const std::string expected = "[\"" + texts[0] + "\",\"\\n\",\"" + texts[2] + "\",\"ccccc\"]";
    ASSERT_EQ(write(texts), expected);
    Buffer buffer;
    write_to(buffer, texts);
    write_to(buffer, 17);
    ASSERT_EQ(buffer.text(), expected + "17");
  }
  const std::vector<double> numbers(1000, 0.25);
  EXPECT_EQ(read<std::vector<double>>(write(numbers)), numbers);
}

TEST(Writer, TextsOfEveryShortLengthFitAtTheEndOfAChunk) {
  for (std::size_t filler = 960; filler < 1030; ++filler) {
    for (std::size_t size = 0; size < 40; ++size) {
      const std::vector<std::string> texts{std::string(filler, 'a'), std::string(size, 'b')};
      ASSERT_EQ(write(texts), "[\"" + texts[0] + "\",\"" + texts[1] + "\"]") << filler;
    }
  }
}

TEST(Writer, AppendsWithoutAllocatingIfThereIsRoom) {
  std::string out("[");
  out.reserve(5000);
  const char* const memory = out.data();
  write_to(out, std::string(3000, 'x'));
  out += ',';
  write_to(out, true);
  EXPECT_EQ(out, "[\"" + std::string(3000, 'x') + "\",true");
  EXPECT_EQ(out.data(), memory);
}

TEST(Writer, AppendsNothingToABufferWithoutAnyMemory) {
  Buffer buffer;
  BufferWriter nothing(buffer);
  nothing.finish();
  EXPECT_TRUE(buffer.empty());
  EXPECT_FALSE(buffer.owns_memory());

  const std::string large(2000, '1');
  BufferWriter writer(buffer);
  writer.put(std::string_view(large));  // larger than a chunk, and nothing comes before it
  writer.finish();
  EXPECT_EQ(buffer.text(), large);
}

struct Tokens {
  std::string filler;
  bool yes;
  bool no;
  std::int64_t least;
  std::uint64_t most;
  double real;
  float single;
  std::string controls;
  std::string unicode;
  std::string middle;
  std::optional<int> empty;
  std::vector<int> numbers;
};

TEST(Writer, PutsEveryTokenAtEveryPositionOfAChunk) {
  const std::string rest =
      R"(","yes":true,"no":false,"least":-9223372036854775808,"most":18446744073709551615,)"
      R"("real":-1.7976931348623157e+308,"single":1.0,"controls":"\u0001\u001f\n\"\\",)"
      "\"unicode\":\"\u00e4\uFFFD\U0001F600\",\"middle\":\"0123456789abcdef\","
      "\"numbers\":[1,23,456]}";
  Tokens tokens{"",
                true,
                false,
                INT64_MIN,
                UINT64_MAX,
                std::numeric_limits<double>::lowest(),
                1.0F,
                "\x01\x1f\n\"\\",
                "\u00e4\xff\U0001F600",
                "0123456789abcdef",
                std::nullopt,
                {1, 23, 456}};
  for (std::size_t size = 0; size < 1100; ++size) {
    tokens.filler.assign(size, 'x');
    const std::string expected = "{\"filler\":\"" + tokens.filler + rest;
    ASSERT_EQ(write(tokens), expected) << size;
    Buffer buffer;
    write_to(buffer, tokens);
    ASSERT_EQ(buffer.text(), expected) << size;
  }
}

TEST(Writer, WritesEveryByteAtEveryPlaceOfAText) {
  for (std::size_t size = 1; size < 40; ++size) {
    for (std::size_t place = 0; place < size; ++place) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text(size, 'x');
        text[place] = static_cast<char>(byte);
        std::string middle(1, text[place]);
        constexpr std::string_view digits = "0123456789abcdef";
        if (byte == '"' || byte == '\\') {
          middle = std::string("\\") + text[place];
        } else if (byte == '\b') {
          middle = "\\b";
        } else if (byte == '\f') {
          middle = "\\f";
        } else if (byte == '\n') {
          middle = "\\n";
        } else if (byte == '\r') {
          middle = "\\r";
        } else if (byte == '\t') {
          middle = "\\t";
        } else if (byte < 0x20) {
          middle = std::string("\\u00") + digits[static_cast<std::size_t>(byte) >> 4] +
                   digits[static_cast<std::size_t>(byte) & 15U];
        } else if (byte >= 0x80) {
          middle = "\uFFFD";
        }
        const std::string expected =
            "\"" + std::string(place, 'x') + middle + std::string(size - place - 1, 'x') + "\"";
        ASSERT_EQ(write(text), expected) << size << " " << place << " " << byte;
      }
    }
  }
}

}  // namespace
}  // namespace weir::json::writer_test
