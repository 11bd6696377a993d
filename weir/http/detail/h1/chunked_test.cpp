// Tests of the chunked-body decoder.
#include "weir/http/detail/h1/chunked.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/test/heap_fixture.hpp"

namespace weir::http::chunked_test {
namespace {

using Kind = ChunkedDecoder::Step::Kind;

/// The result of decoding a body.
struct Decoded {
  std::string data;
  std::size_t pieces = 0;
  std::size_t consumed = 0;
  Kind kind = Kind::need_more;
  ParseError error = ParseError::none;
};

Decoded decode(ChunkedDecoder& decoder, std::string_view input) {
  Decoded decoded;
  while (true) {
    const ChunkedDecoder::Step step = decoder.next(input.substr(decoded.consumed));
    decoded.consumed += step.consumed;
    decoded.kind = step.kind;
    decoded.error = step.error;
    if (step.kind != Kind::data) return decoded;
    EXPECT_FALSE(step.data.empty());
    decoded.data += step.data;
    ++decoded.pieces;
  }
}

ParseError error_of(std::string_view input, const ChunkLimits& limits = {}) {
  ChunkedDecoder decoder(limits);
  return decode(decoder, input).error;
}

TEST(Chunked, ReturnsDataAsViewsIntoTheInput) {
  const std::string input = "5\r\nhello\r\nA;x=y\r\n0123456789\r\n000\r\n\r\nGET";
  ChunkedDecoder decoder;
  const ChunkedDecoder::Step first = decoder.next(input);
  ASSERT_EQ(first.kind, Kind::data);
  EXPECT_EQ(first.data.data(), input.data() + 3);
  EXPECT_EQ(first.data, "hello");
  EXPECT_EQ(first.consumed, 8u);
  const Decoded rest = decode(decoder, std::string_view(input).substr(first.consumed));
  EXPECT_EQ(rest.kind, Kind::end);
  EXPECT_EQ(rest.data, "0123456789");
  EXPECT_EQ(rest.pieces, 1u);
  EXPECT_EQ(first.consumed + rest.consumed, input.size() - 3);
  EXPECT_TRUE(decoder.ended());
  EXPECT_TRUE(decoder.trailers().empty());
}

TEST(Chunked, ConsumesNothingAfterTheEnd) {
  ChunkedDecoder decoder;
  ASSERT_EQ(decode(decoder, "0\r\n\r\n").kind, Kind::end);
  const ChunkedDecoder::Step again = decoder.next("0\r\n\r\n");
  EXPECT_EQ(again.kind, Kind::end);
  EXPECT_EQ(again.consumed, 0u);
  decoder.reset();
  EXPECT_FALSE(decoder.ended());
  EXPECT_EQ(decode(decoder, "1\r\na\r\n0\r\n\r\n").data, "a");
}

TEST(Chunked, KeepsReportingAnError) {
  ChunkedDecoder decoder;
  const Decoded refused = decode(decoder, "1\r\nab");
  EXPECT_EQ(refused.data, "a");
  EXPECT_EQ(refused.error, ParseError::bad_chunk_end);
  EXPECT_EQ(decoder.next("\r\n0\r\n\r\n").error, ParseError::bad_chunk_end);
}

TEST(Chunked, SeparatesTrailersFromHeaders) {
  ChunkedDecoder decoder;
  const Decoded decoded =
      decode(decoder, "1\r\na\r\n0\r\nX-Sum:\t 17 \r\nEmpty:\r\nx-sum: 18\r\n\r\n");
  ASSERT_EQ(decoded.kind, Kind::end);
  EXPECT_EQ(decoder.trailers().lines(), "X-Sum: 17\r\nEmpty: \r\nx-sum: 18\r\n");
  ChunkedDecoder moved = std::move(decoder);
  EXPECT_EQ(moved.trailers().get("X-SUM"), "17");
  moved.reset();
  EXPECT_TRUE(moved.trailers().empty());
}

TEST(Chunked, RejectsTrailersThatChangeTheMessage) {
  for (auto name : {"Content-Length", "transfer-encoding", "HOST", "Connection", "Upgrade",
                    "Expect", "TE", "Trailer", "Keep-Alive", "Proxy-Connection"}) {
    EXPECT_EQ(error_of("0\r\n" + std::string(name) + ": x\r\n\r\n"), ParseError::forbidden_trailer);
    EXPECT_EQ(error_of("0\r\nX-" + std::string(name) + ": x\r\n\r\n"), ParseError::none);
  }
}

TEST(Chunked, SizesFit63Bits) {
  ChunkedDecoder decoder;
  const Decoded largest = decode(decoder, "7fffFFFFffffFFFF\r\nab");
  EXPECT_EQ(largest.kind, Kind::need_more);
  EXPECT_EQ(largest.data, "ab");
  EXPECT_EQ(error_of("8000000000000000\r\n"), ParseError::chunk_size_too_large);
  EXPECT_EQ(error_of("00000000000000001\r\n"), ParseError::chunk_size_too_large);
  EXPECT_EQ(error_of("0000000000000001\r\n"), ParseError::none);
}

TEST(Chunked, ReportsTheExactError) {
  EXPECT_EQ(error_of("\r\n"), ParseError::bad_line_end);
  EXPECT_EQ(error_of("g\r\n"), ParseError::bad_chunk_size);
  EXPECT_EQ(error_of(" 1\r\n"), ParseError::bad_chunk_size);
  EXPECT_EQ(error_of("1x"), ParseError::bad_chunk_size);
  EXPECT_EQ(error_of("1\n"), ParseError::bad_line_end);
  EXPECT_EQ(error_of("1\ra"), ParseError::bad_line_end);
  EXPECT_EQ(error_of("1 \r\n"), ParseError::bad_line_end);
  EXPECT_EQ(error_of("1 a"), ParseError::bad_chunk_extension);
  EXPECT_EQ(error_of("1;\""), ParseError::bad_chunk_extension);
  EXPECT_EQ(error_of("1;a=\"\r"), ParseError::bad_line_end);
  EXPECT_EQ(error_of("1\r\na\n"), ParseError::bad_chunk_end);
  EXPECT_EQ(error_of("1\r\na\rb"), ParseError::bad_chunk_end);
  EXPECT_EQ(error_of("0\r\n\n"), ParseError::bad_line_end);
  EXPECT_EQ(error_of("0\r\n X: y"), ParseError::folded_line);
  EXPECT_EQ(error_of("0\r\nX : y"), ParseError::space_before_colon);
  EXPECT_EQ(error_of("0\r\n: y"), ParseError::bad_header_name);
  EXPECT_EQ(error_of("0\r\nX\r\n"), ParseError::bad_line_end);
  EXPECT_EQ(error_of("0\r\nX: \x01"), ParseError::bad_header_value);
  EXPECT_EQ(error_of("0\r\nX: a\rb"), ParseError::bad_line_end);
}

TEST(Chunked, EnforcesLimitsExactly) {
  const ChunkLimits limits{
      .line_max = 10, .extensions_max = 14, .trailers_bytes_max = 8, .trailers_max = 2};
  EXPECT_EQ(error_of("1;a=234567\r\na\r\n", limits), ParseError::none);
  EXPECT_EQ(error_of("1;a=2345678", limits), ParseError::chunk_line_too_long);
  EXPECT_EQ(error_of("1;a=234567\r\na\r\n1;a=23\r\n", limits), ParseError::none);
  EXPECT_EQ(error_of("1;a=234567\r\na\r\n1;a=234", limits), ParseError::chunk_extensions_too_long);
  EXPECT_EQ(error_of("0\r\na:bc\r\nd:ef\r\n\r\n", limits), ParseError::none);
  EXPECT_EQ(error_of("0\r\na:bc\r\nd:efg", limits), ParseError::trailers_too_long);
  EXPECT_EQ(error_of("0\r\na:\r\nb:\r\nc", limits), ParseError::too_many_trailers);
}

TEST(Chunked, LimitsEachSizeLineAlone) {
  const ChunkLimits limits{.line_max = 6};
  EXPECT_EQ(error_of("1;a=23\r\nx\r\n1;a=23\r\nx\r\n0;a=23\r\n\r\n", limits), ParseError::none);
  EXPECT_EQ(error_of("1;a=23\r\nx\r\n1;a=234\r\n", limits), ParseError::chunk_line_too_long);
  EXPECT_EQ(error_of("000001\r\nx\r\n", limits), ParseError::none);
  EXPECT_EQ(error_of("0000001", limits), ParseError::chunk_line_too_long);
}

TEST(Chunked, DefaultLimitOfASizeLineIs1024Bytes) {
  const std::string extension(1024 - 4, 'v');
  EXPECT_EQ(error_of("1;a=" + extension + "\r\nx\r\n0\r\n\r\n"), ParseError::none);
  EXPECT_EQ(error_of("1;a=" + extension + "v\r\n"), ParseError::chunk_line_too_long);
}

/// The result of decoding a body, without the number of its pieces.
struct Outcome {
  Kind kind = Kind::need_more;
  ParseError error = ParseError::none;
  std::size_t consumed = 0;
  std::string data;
  std::string trailers;

  bool operator==(const Outcome&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
    return out << static_cast<int>(outcome.kind) << " " << name_of(outcome.error) << " "
               << outcome.consumed << " " << outcome.data << " " << outcome.trailers;
  }
};

/// Decodes the pieces of `input` that end at `ends`, each in an allocation of exactly its size.
Outcome decode_pieces(ChunkedDecoder& decoder, std::string_view input,
                      const std::vector<std::size_t>& ends) {
  Outcome outcome;
  std::size_t start = 0;
  for (const std::size_t end : ends) {
    const std::string_view piece = input.substr(start, end - start);
    const std::unique_ptr<char[]> bytes(new char[piece.size()]);
    if (!piece.empty()) std::memcpy(bytes.get(), piece.data(), piece.size());
    const Decoded decoded = decode(decoder, {bytes.get(), piece.size()});
    outcome.kind = decoded.kind;
    outcome.error = decoded.error;
    outcome.consumed += decoded.consumed;
    outcome.data += decoded.data;
    if (decoded.kind != Kind::need_more) break;
    EXPECT_EQ(decoded.consumed, piece.size());
    start = end;
  }
  EXPECT_EQ(decoder.ended(), outcome.kind == Kind::end);
  if (outcome.kind == Kind::end) outcome.trailers = decoder.trailers().lines();
  return outcome;
}

/// Expects this outcome for all bytes in one call, for every pair of pieces and byte by byte. A
/// second body has the same outcome.
void expect_for_every_arrival(std::string_view input, const Outcome& expected,
                              const ChunkLimits& limits = {}) {
  std::vector<std::vector<std::size_t>> arrivals{{input.size()}};
  std::vector<std::size_t> single;
  for (std::size_t cut = 0; cut < input.size(); ++cut) {
    arrivals.push_back({cut, input.size()});
    single.push_back(cut + 1);
  }
  arrivals.push_back(single);
  for (const std::vector<std::size_t>& ends : arrivals) {
    ChunkedDecoder decoder(limits);
    for (int round = 0; round < 2; ++round) {
      ASSERT_EQ(decode_pieces(decoder, input, ends), expected)
          << input << "\nfirst piece: " << ends.front() << ", round " << round;
      decoder.reset();
      ASSERT_FALSE(decoder.ended());
      ASSERT_TRUE(decoder.trailers().empty());
    }
  }
}

/// Expects the error at the last byte of `input`, not before it, and whatever follows it.
void expect_error_at_last_byte(const std::string& input, ParseError error,
                               const ChunkLimits& limits = {}) {
  ChunkedDecoder decoder(limits);
  const Decoded before = decode(decoder, std::string_view(input).substr(0, input.size() - 1));
  ASSERT_EQ(before.kind, Kind::need_more) << input;
  const Outcome expected{Kind::error, error, input.size() - 1, before.data, {}};
  expect_for_every_arrival(input, expected, limits);
  for (const std::string more : {"0\r\n\r\n", "\n\r\n", "\r\n\r\n", ": x\r\n\r\n"}) {
    const std::string whole = input + more;
    decoder = ChunkedDecoder(limits);
    EXPECT_EQ(decode_pieces(decoder, whole, {whole.size()}), expected) << whole;
    decoder.reset();
    EXPECT_EQ(decode_pieces(decoder, whole, {input.size() - 1, whole.size()}), expected) << whole;
  }
}

TEST(ChunkedArrival, BodiesAreTheSameForEveryArrival) {
  struct Body {
    std::string_view input;
    std::string_view data;
    std::string_view trailers;
  };
  for (const Body& each : std::initializer_list<Body>{
           {"0\r\n\r\n", "", ""},
           {"000\r\n\r\n", "", ""},
           {"0000000000000000\r\n\r\n", "", ""},
           {"1\r\na\r\n0\r\n\r\n", "a", ""},
           {"0000000000000001\r\na\r\n0\r\n\r\n", "a", ""},
           {"5\r\n\r\n0\r\n\r\n1\r\nx\r\n0\r\n\r\n", "\r\n0\r\nx", ""},
           {"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", ""},
           {"10\r\n0123456789abcdef\r\n0\r\n\r\n", "0123456789abcdef", ""},
           {"1;a\r\na\r\n1;b=c\r\nb\r\n1;d=\"e\"\r\nc\r\n0;f\r\n\r\n", "abc", ""},
           {"1\r\na\r\n01\r\nb\r\n001\r\nc\r\n0001\r\nd\r\n00001\r\ne\r\n000001\r\nf\r\n0\r\n\r\n",
            "abcdef", ""},
           {"1\r\na\r\n0000000000000001\r\nb\r\n0000000000000000\r\n\r\n", "ab", ""},
           {"0\r\nA: b\r\n\r\n", "", "A: b\r\n"},
           {"1\r\nx\r\n0;e\r\nA:b\r\nC:\t d \r\nE:\r\na: f\r\n\r\n", "x",
            "A: b\r\nC: d\r\nE: \r\na: f\r\n"},
           {"0\r\nx_y~|`^.!#$%&'*+-9: \xff\x80:\t,\r\n\r\n", "",
            "x_y~|`^.!#$%&'*+-9: \xff\x80:\t,\r\n"}}) {
    expect_for_every_arrival(each.input, {Kind::end, ParseError::none, each.input.size(),
                                          std::string(each.data), std::string(each.trailers)});
  }
}

TEST(ChunkedArrival, ExtensionsFollowTheGrammar) {
  for (const std::string extension : {";a",
                                      ";a=b",
                                      " ;a",
                                      "  ;a",
                                      ";  a",
                                      ";a  =  b",
                                      ";a=b  ;c",
                                      ";a  = \t\"b\" \t;c",
                                      "\t;\ta\t=\tb",
                                      " ; a = b",
                                      ";a;b",
                                      ";a=b;c",
                                      ";a=b ;c=d",
                                      ";a ;b",
                                      ";a=\"\"",
                                      ";a=\"b\"",
                                      ";a = \"b;c=d \t\x80\xff\" ;e",
                                      ";a=\"\\\"\"",
                                      ";a=\"\\\\\";b",
                                      ";!#$%&'*+-.^_`|~09=!#$%&'*+-.^_`|~09",
                                      ";a=\"(),/:<=>?@[]{}\""}) {
    const std::string input = "1" + extension + "\r\nx\r\n0" + extension + "\r\n\r\n";
    expect_for_every_arrival(input, {Kind::end, ParseError::none, input.size(), "x", {}});
  }
}

struct InvalidBody {
  std::string_view input;  ///< bytes up to the first one that makes the body invalid
  ParseError error;
};

constexpr InvalidBody invalid_bodies[] = {
    {"\r", ParseError::bad_line_end},
    {"\n", ParseError::bad_line_end},
    {"g", ParseError::bad_chunk_size},
    {"-", ParseError::bad_chunk_size},
    {"+", ParseError::bad_chunk_size},
    {";", ParseError::bad_chunk_size},
    {" ", ParseError::bad_chunk_size},
    {"0x", ParseError::bad_chunk_size},
    {"1_", ParseError::bad_chunk_size},
    {"1,", ParseError::bad_chunk_size},
    {"1\x80", ParseError::bad_chunk_size},
    {"1\n", ParseError::bad_line_end},
    {"1\r\r", ParseError::bad_line_end},
    {"0\r0", ParseError::bad_line_end},
    {"8000000000000000", ParseError::chunk_size_too_large},
    {"ffffffffffffffff", ParseError::chunk_size_too_large},
    {"00000000000000001", ParseError::chunk_size_too_large},
    {"00000000000000000", ParseError::chunk_size_too_large},
    {"1 \r", ParseError::bad_line_end},
    {"1 1", ParseError::bad_chunk_extension},
    {"1\t=", ParseError::bad_chunk_extension},
    {"1;\r", ParseError::bad_line_end},
    {"1; \r", ParseError::bad_line_end},
    {"1;;", ParseError::bad_chunk_extension},
    {"1;=", ParseError::bad_chunk_extension},
    {"1;\"", ParseError::bad_chunk_extension},
    {"1;a\n", ParseError::bad_line_end},
    {"1;a\"", ParseError::bad_chunk_extension},
    {"1;a,", ParseError::bad_chunk_extension},
    {"1;a b", ParseError::bad_chunk_extension},
    {"1;a \r", ParseError::bad_line_end},
    {"1;a=\r", ParseError::bad_line_end},
    {"1;a=;", ParseError::bad_chunk_extension},
    {"1;a==", ParseError::bad_chunk_extension},
    {"1;a= \n", ParseError::bad_line_end},
    {"1;a=b\n", ParseError::bad_line_end},
    {"1;a=b=", ParseError::bad_chunk_extension},
    {"1;a=b c", ParseError::bad_chunk_extension},
    {"1;a=b\"", ParseError::bad_chunk_extension},
    {"1;a=\"b\"c", ParseError::bad_chunk_extension},
    {"1;a=\"b\"\"", ParseError::bad_chunk_extension},
    {"1;a=\"b\"\n", ParseError::bad_line_end},
    {"1;a=\"\n", ParseError::bad_line_end},
    {"1;a=\"\r", ParseError::bad_line_end},
    {"1;a=\"\x7f", ParseError::bad_chunk_extension},
    {"1;a=\"\\\x01", ParseError::bad_chunk_extension},
    {"1;a=\"\\\r", ParseError::bad_line_end},
    {"1;a=b\r1", ParseError::bad_line_end},
    {"1\r\nab", ParseError::bad_chunk_end},
    {"1\r\na\n", ParseError::bad_chunk_end},
    {"1\r\na\r\r", ParseError::bad_chunk_end},
    {"1\r\na\r\n\r", ParseError::bad_line_end},
    {"1\r\na\r\n;", ParseError::bad_chunk_size},
    {"0\r\n\n", ParseError::bad_line_end},
    {"0\r\n\r\r", ParseError::bad_line_end},
    {"0\r\n ", ParseError::folded_line},
    {"0\r\n\t", ParseError::folded_line},
    {"0\r\nA: b\r\n ", ParseError::folded_line},
    {"0\r\n:", ParseError::bad_header_name},
    {"0\r\n(", ParseError::bad_header_name},
    {"0\r\nA\x80", ParseError::bad_header_name},
    {"0\r\nA ", ParseError::space_before_colon},
    {"0\r\nA\t", ParseError::space_before_colon},
    {"0\r\nA\r", ParseError::bad_line_end},
    {"0\r\nA\n", ParseError::bad_line_end},
    {"0\r\nA:\n", ParseError::bad_line_end},
    {"0\r\nA: b\rc", ParseError::bad_line_end},
    {"0\r\nA: \x01", ParseError::bad_header_value},
    {"0\r\nA: b\x7f", ParseError::bad_header_value},
    {"0\r\nHost:", ParseError::forbidden_trailer},
    {"0\r\nA: b\r\ncontent-LENGTH:", ParseError::forbidden_trailer}};

TEST(ChunkedArrival, RejectsABodyAtItsFirstInvalidByte) {
  for (const InvalidBody& each : invalid_bodies) {
    expect_error_at_last_byte(std::string(each.input), each.error);
  }
}

TEST(ChunkedArrival, LimitsTheBytesOfASizeLine) {
  const ChunkLimits limits{.line_max = 8};
  for (const std::string line : {"00000001", "1;a=bcde", "1;abcdef", "1  ;a;bc", "1;a=\"b\""}) {
    const std::string input = line + "\r\nx\r\n0;a=bcde\r\n\r\n";
    expect_for_every_arrival(input, {Kind::end, ParseError::none, input.size(), "x", {}}, limits);
  }
  for (const std::string line :
       {"000000001", "1;a=bcdef", "1;abcdefg", "1       ;", "1;a=\"bcd\"", "1;a=\"\\bcd"}) {
    expect_error_at_last_byte(line, ParseError::chunk_line_too_long, limits);
    expect_error_at_last_byte("1;a=bcde\r\nx\r\n" + line, ParseError::chunk_line_too_long, limits);
  }
}

TEST(ChunkedArrival, LimitsTheExtensionsOfAllLinesTogether) {
  const ChunkLimits limits{.extensions_max = 10};
  const std::string lines = "1;a=b\r\nx\r\n1 ;cd\r\ny\r\n";  // 4 + 4 bytes
  const std::string input = lines + "1;e\r\nz\r\n0\r\n\r\n";
  expect_for_every_arrival(input, {Kind::end, ParseError::none, input.size(), "xyz", {}}, limits);
  expect_error_at_last_byte(lines + "1;ef", ParseError::chunk_extensions_too_long, limits);
  expect_error_at_last_byte(lines + "1;e\r\nz\r\n0;", ParseError::chunk_extensions_too_long,
                            limits);
  expect_error_at_last_byte("1;", ParseError::chunk_extensions_too_long, {.extensions_max = 0});
}

TEST(ChunkedArrival, LimitsTrailers) {
  const ChunkLimits limits{.trailers_bytes_max = 8, .trailers_max = 2};
  for (const std::string lines : {"A:bcdefg\r\n", "A:b\r\nC:def\r\n", "A: b \r\nC:d\r\n"}) {
    const std::string input = "0\r\n" + lines + "\r\n";
    ChunkedDecoder decoder(limits);
    EXPECT_EQ(decode(decoder, input).kind, Kind::end) << lines;
    expect_for_every_arrival(
        input,
        {Kind::end, ParseError::none, input.size(), {}, std::string(decoder.trailers().lines())},
        limits);
  }
  for (const std::string lines :
       {"A:bcdefgh", "Abcdefghi", "Abcdefgh:", "A:b\r\nC:defg", "A:b\r\nCdefgh"}) {
    expect_error_at_last_byte("0\r\n" + lines, ParseError::trailers_too_long, limits);
  }
  expect_error_at_last_byte("0\r\nA:\r\nB:\r\nC", ParseError::too_many_trailers, limits);
  expect_error_at_last_byte("0\r\nA", ParseError::too_many_trailers, {.trailers_max = 0});
  expect_error_at_last_byte("0\r\nA", ParseError::trailers_too_long, {.trailers_bytes_max = 0});
}

TEST(Chunked, DefaultLimitsAreThoseOfTheContract) {
  const ChunkLimits limits;
  EXPECT_EQ(limits.line_max, 1024U);
  EXPECT_EQ(limits.extensions_max, 16384U);
  EXPECT_EQ(limits.trailers_bytes_max, 65536U);
  EXPECT_EQ(limits.trailers_max, 100U);
  std::string lines;
  for (int each = 0; each < 100; ++each) lines += "A:\r\n";
  EXPECT_EQ(error_of("0\r\n" + lines + "\r\n"), ParseError::none);
  EXPECT_EQ(error_of("0\r\n" + lines + "A:\r\n\r\n"), ParseError::too_many_trailers);
  EXPECT_EQ(error_of("0\r\nA:" + std::string(65534, 'v') + "\r\n\r\n"), ParseError::none);
  EXPECT_EQ(error_of("0\r\nA:" + std::string(65535, 'v')), ParseError::trailers_too_long);
}

TEST(Chunked, ReturnsNoMoreDataThanTheChunkHas) {
  for (const std::size_t size : {1U, 15U, 16U, 255U, 4096U, 70'000U}) {
    std::string line;
    for (std::size_t rest = size; rest > 0; rest /= 16) {
      line.insert(line.begin(), "0123456789ABCDEF"[rest % 16]);
    }
    const std::string data(size, 'd');
    const std::string input = line + "\r\n" + data + "\r\n0\r\n\r\nNEXT";
    ChunkedDecoder decoder;
    const Decoded decoded = decode(decoder, input);
    EXPECT_EQ(decoded.kind, Kind::end);
    EXPECT_EQ(decoded.data, data);
    EXPECT_EQ(decoded.pieces, 1U);
    EXPECT_EQ(decoded.consumed, input.size() - 4);
  }
}

TEST(Chunked, ReturnsDataOfAChunkOfTheLargestSize) {
  ChunkedDecoder decoder;
  ASSERT_EQ(decode(decoder, "7fffffffffffffff\r\n").kind, Kind::need_more);
  const std::string data(1000, 'd');
  for (int each = 0; each < 100; ++each) {
    const ChunkedDecoder::Step step = decoder.next(data);
    ASSERT_EQ(step.kind, Kind::data);
    ASSERT_EQ(step.consumed, 1000U);
    ASSERT_EQ(step.data.size(), 1000U);
  }
}

TEST(Chunked, AllocatesOnlyForTrailers) {
  if (!TestHeap::replaced) GTEST_SKIP() << "only a replaced operator new counts allocations";
  const auto allocations = [](std::string_view input) {
    const std::uint64_t before = TestHeap::news;
    ChunkedDecoder decoder;
    std::size_t consumed = 0;
    ChunkedDecoder::Step step;
    do {
      step = decoder.next(input.substr(consumed));
      consumed += step.consumed;
    } while (step.kind == Kind::data);
    decoder.reset();
    EXPECT_EQ(step.kind, Kind::end);
    return TestHeap::news - before;
  };
  EXPECT_EQ(allocations("5;a=\"b\"\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"), 0U);
  EXPECT_NE(allocations("0\r\nA: b\r\n\r\n"), 0U);
}

TEST(Chunked, AMovedDecoderContinuesTheBody) {
  ChunkedDecoder first({.extensions_max = 3});
  EXPECT_EQ(decode(first, "3;a\r\nab").data, "ab");
  ChunkedDecoder second = std::move(first);
  EXPECT_EQ(decode(second, "c\r\n0\r\nA:").data, "c");
  ChunkedDecoder third;
  third = std::move(second);
  EXPECT_EQ(decode(third, " b\r\n\r\n").kind, Kind::end);
  EXPECT_EQ(third.trailers().lines(), "A: b\r\n");
  third.reset();
  EXPECT_EQ(decode(third, "1;ab").kind, Kind::need_more);
  EXPECT_EQ(decode(third, "c").error, ParseError::chunk_extensions_too_long);
}

}  // namespace
}  // namespace weir::http::chunked_test
