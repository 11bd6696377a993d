// Compares HPACK with nghttp2: each side reads the blocks of the other one, and both judge random
// blocks in the same way.
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/huffman.hpp"
#include "weir/http/test/hpack_fixture.hpp"
#include "weir/http/test/nghttp2_decoder.hpp"

namespace weir::http::hpack_judge_test {
namespace {

using Fields = std::vector<TextField>;

/// Returns the seed from WEIR_TEST_SEED, else the same seed in each run.
std::uint32_t seed() {
  const char* const text = std::getenv("WEIR_TEST_SEED");
  return text == nullptr ? 7541 : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

std::uint8_t* bytes_of(std::string& text) {
  return reinterpret_cast<std::uint8_t*>(text.data());
}

/// The encoder of nghttp2.
class Deflater {
 public:
  Deflater() { nghttp2_hd_deflate_new(&deflater_, 4096); }
  ~Deflater() { nghttp2_hd_deflate_del(deflater_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void set_size_max(std::size_t size_max) {
    EXPECT_EQ(nghttp2_hd_deflate_change_table_size(deflater_, size_max), 0);
  }
  std::size_t table_size() const { return nghttp2_hd_deflate_get_dynamic_table_size(deflater_); }

  std::string encode(Fields fields) {
    std::vector<nghttp2_nv> pairs;
    for (TextField& each : fields) {
      const int flags = each.never_indexed ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
      pairs.push_back({bytes_of(each.name), bytes_of(each.value), each.name.size(),
                       each.value.size(), static_cast<std::uint8_t>(flags)});
    }
    std::string out(nghttp2_hd_deflate_bound(deflater_, pairs.data(), pairs.size()), '\0');
    const auto size =
        nghttp2_hd_deflate_hd(deflater_, bytes_of(out), out.size(), pairs.data(), pairs.size());
    EXPECT_GE(size, 0);
    out.resize(static_cast<std::size_t>(size));
    return out;
  }

 private:
  nghttp2_hd_deflater* deflater_ = nullptr;
};

/// Makes lists of fields that resemble those of real messages: many names and values occur again.
class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  std::string text(std::size_t size_max) {
    const std::size_t size = below(static_cast<std::uint32_t>(size_max) + 1);
    const std::uint32_t kind = below(8);
    std::string text;
    for (std::size_t index = 0; index < size; ++index) {
      text += static_cast<char>(kind == 0   ? below(256)
                                : kind == 1 ? ' ' + below(95)
                                            : 'a' + below(26));
    }
    return text;
  }

  TextField field() {
    if (!seen_.empty() && below(2) == 0) {
      TextField again = seen_[below(static_cast<std::uint32_t>(seen_.size()))];
      if (below(3) == 0) again.value = text(40);
      return again;
    }
    TextField made;
    if (below(3) == 0) {
      const HeaderField& known = hpack_static_fields[below(61)];
      made = {std::string(known.name), std::string(known.value)};
      if (below(2) == 0) made.value = text(60);
    } else {
      made = {"n" + text(below(10) == 0 ? 300 : 20), text(below(10) == 0 ? 3000 : 50)};
    }
    for (char& each : made.name) each = to_lower(each);
    made.never_indexed = below(16) == 0;
    if (seen_.size() < 60) {
      seen_.push_back(made);
    } else {
      seen_[below(60)] = made;
    }
    return made;
  }

  Fields fields() {
    Fields fields;
    for (std::uint32_t left = below(12); left > 0; --left) {
      fields.push_back(field());
      TextField& last = fields.back();
      // nghttp2 decides this for two names.
      last.never_indexed |= last.name == "authorization";
      last.never_indexed |= last.name == "cookie" && last.value.size() < 20;
    }
    return fields;
  }

  std::string integer(unsigned first, unsigned prefix_bits, std::uint32_t value) {
    const std::uint32_t prefix = (1U << prefix_bits) - 1;
    std::string out;
    if (value < prefix) return {static_cast<char>(first | value)};
    out += static_cast<char>(first | prefix);
    for (value -= prefix; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
    out += static_cast<char>(value);
    if (below(32) == 0) {  // a byte that adds nothing
      out.back() = static_cast<char>(out.back() | '\x80');
      out += '\0';
    }
    return out;
  }

  std::string literal(const std::string& text) {
    if (below(2) == 0) return integer(0, 7, static_cast<std::uint32_t>(text.size())) + text;
    std::string code(huffman_size(text), '\0');
    huffman_encode(text, code.data());
    return integer(0x80, 7, static_cast<std::uint32_t>(code.size())) + code;
  }

  /// Returns a block of random representations, most of which are valid.
  std::string block(std::uint32_t table_count) {
    std::string out;
    while (below(6) == 0) {
      out += integer(0x20, 5, below(3) == 0 ? 4096 + below(2) * below(2) : below(4097));
    }
    for (std::uint32_t left = below(10); left > 0; --left) {
      const std::uint32_t index = below(61 + table_count + (below(20) == 0 ? 2 : 0)) + 1;
      const std::uint32_t kind = below(10);
      if (kind < 3) {
        out += integer(0x80, 7, index);
        continue;
      }
      const bool inserts = kind < 8;
      table_count += inserts ? 1 : 0;  // evictions make some indexes invalid
      const bool named = below(2) == 0;
      out += integer(inserts ? 0x40 : kind == 8 ? 0x10 : 0, inserts ? 6 : 4, named ? index : 0);
      if (!named) out += literal(text(below(20) == 0 ? 4200 : 20));
      out += literal(text(below(20) == 0 ? 4200 : 50));
    }
    return out;
  }

  void change_bytes(std::string& block) {
    for (std::uint32_t left = below(3); left > 0 && !block.empty(); --left) {
      block[below(static_cast<std::uint32_t>(block.size()))] ^= static_cast<char>(1 << below(8));
    }
    if (below(8) == 0 && !block.empty()) block.pop_back();
  }

 private:
  std::mt19937 random_;
  Fields seen_;
};

TEST(HpackJudge, BlocksOfNghttp2AreDecoded) {
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed()));
  Generator generator(seed());
  std::size_t evictions = 0;
  for (int connection = 0; connection < 60; ++connection) {
    Deflater deflater;
    HpackTable table;
    for (int round = 0; round < 60; ++round) {
      if (generator.below(10) == 0) deflater.set_size_max(generator.below(5000));
      if (generator.below(20) == 0) deflater.set_size_max(0);
      if (generator.below(10) == 0) deflater.set_size_max(4096);
      const Fields fields = generator.fields();
      const std::uint32_t before = table.count();
      const DecodedBlock decoded = decode_block(table, deflater.encode(fields));
      ASSERT_EQ(decoded.end, HpackDecoder::Step::end);
      ASSERT_EQ(decoded.fields, fields);
      ASSERT_EQ(table.size(), deflater.table_size());
      if (table.count() < before + fields.size()) ++evictions;
    }
  }
  EXPECT_GT(evictions, 1000U);
}

TEST(HpackJudge, Nghttp2DecodesBlocks) {
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed()));
  Generator generator(seed());
  for (int connection = 0; connection < 60; ++connection) {
    Nghttp2Decoder decoder;
    HpackEncoderState encoder;
    for (int round = 0; round < 60; ++round) {
      for (std::uint32_t changes = generator.below(4); changes > 1; --changes) {
        const std::uint32_t size_max = generator.below(5000);
        ASSERT_TRUE(decoder.set_size_max(size_max));
        encoder.set_peer_size_max(size_max);
      }
      const Fields fields = generator.fields();
      std::string block(HpackEncoderState::size_update_max, '\0');
      block.resize(
          static_cast<std::size_t>(encoder.write_size_update(block.data()) - block.data()));
      for (const TextField& each : fields) {
        std::string out(hpack_field_size_max(each.name, each.value), '\0');
        const auto indexing = each.never_indexed ? HpackIndexing::never : HpackIndexing::allowed;
        const char* const end = write_hpack_field(each.name, each.value, out.data(), indexing);
        block.append(out, 0, static_cast<std::size_t>(end - out.data()));
      }
      ASSERT_EQ(decoder.decode(block), fields);
      ASSERT_EQ(decoder.table_size(), 0U);
    }
  }
}

TEST(HpackJudge, RandomBlocksHaveTheSameFieldsAndErrors) {
  SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed()));
  Generator generator(seed());
  int valid = 0;
  int invalid = 0;
  for (int connection = 0; connection < 3000; ++connection) {
    Nghttp2Decoder decoder;
    HpackTable table;
    for (int round = 0; round < 30; ++round) {
      std::string block = generator.block(table.count());
      if (connection % 4 == 0) generator.change_bytes(block);
      const std::optional<Fields> expected = decoder.decode(block);
      const DecodedBlock decoded = decode_block(table, block);
      ASSERT_EQ(decoded.end == HpackDecoder::Step::end, expected.has_value())
          << testing::PrintToString(block);
      if (!expected) {
        ++invalid;
        break;
      }
      ++valid;
      ASSERT_EQ(decoded.fields, *expected);
      ASSERT_EQ(table.size(), decoder.table_size());
    }
  }
  EXPECT_GT(valid, 3000);
  EXPECT_GT(invalid, 500);
}

TEST(HpackJudge, AllPairsOfBytesHaveTheSameHuffmanCode) {
  Deflater deflater;
  for (int first = 0; first < 256; ++first) {
    Fields fields;
    for (int second = 0; second < 256; ++second) {
      const std::string value{static_cast<char>(first), static_cast<char>(second)};
      fields.push_back({"n", value + value + value + value, true});
    }
    const std::string block = deflater.encode(fields);
    std::string own;
    for (const TextField& each : fields) {
      std::string out(hpack_field_size_max(each.name, each.value), '\0');
      const char* const end =
          write_hpack_field(each.name, each.value, out.data(), HpackIndexing::never);
      own.append(out, 0, static_cast<std::size_t>(end - out.data()));
    }
    ASSERT_EQ(own, block) << first;
  }
}

}  // namespace
}  // namespace weir::http::hpack_judge_test
