#include "weir/http/detail/h1/chunked.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace weir::http {
namespace {

using Kind = ChunkedDecoder::Step::Kind;

/// What came of a body.
struct Decoded {
  std::string data;
  std::size_t pieces = 0;
  std::size_t consumed = 0;
  Kind kind = Kind::need_more;
  Refusal refusal = Refusal::none;
};

Decoded decode(ChunkedDecoder& decoder, std::string_view input) {
  Decoded decoded;
  while (true) {
    const ChunkedDecoder::Step step = decoder.next(input.substr(decoded.consumed));
    decoded.consumed += step.consumed;
    decoded.kind = step.kind;
    decoded.refusal = step.refusal;
    if (step.kind != Kind::data) return decoded;
    EXPECT_FALSE(step.data.empty());
    decoded.data += step.data;
    ++decoded.pieces;
  }
}

Refusal refusal_of(std::string_view input, const ChunkLimits& limits = {}) {
  ChunkedDecoder decoder(limits);
  return decode(decoder, input).refusal;
}

TEST(Chunked, DataComesInPiecesOfTheInputItself) {
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

TEST(Chunked, AfterTheEndNothingIsTaken) {
  ChunkedDecoder decoder;
  ASSERT_EQ(decode(decoder, "0\r\n\r\n").kind, Kind::end);
  const ChunkedDecoder::Step again = decoder.next("0\r\n\r\n");
  EXPECT_EQ(again.kind, Kind::end);
  EXPECT_EQ(again.consumed, 0u);
  decoder.reset();
  EXPECT_FALSE(decoder.ended());
  EXPECT_EQ(decode(decoder, "1\r\na\r\n0\r\n\r\n").data, "a");
}

TEST(Chunked, ARefusalStays) {
  ChunkedDecoder decoder;
  const Decoded refused = decode(decoder, "1\r\nab");
  EXPECT_EQ(refused.data, "a");
  EXPECT_EQ(refused.refusal, Refusal::bad_chunk_end);
  EXPECT_EQ(decoder.next("\r\n0\r\n\r\n").refusal, Refusal::bad_chunk_end);
}

TEST(Chunked, TrailersAreKeptApart) {
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

TEST(Chunked, TrailersThatWouldChangeTheMessageAreRefused) {
  for (auto name : {"Content-Length", "transfer-encoding", "HOST", "Connection", "Upgrade",
                    "Expect", "TE", "Trailer"}) {
    EXPECT_EQ(refusal_of("0\r\n" + std::string(name) + ": x\r\n\r\n"), Refusal::forbidden_trailer);
    EXPECT_EQ(refusal_of("0\r\nX-" + std::string(name) + ": x\r\n\r\n"), Refusal::none);
  }
}

TEST(Chunked, SizesFit63Bits) {
  ChunkedDecoder decoder;
  const Decoded largest = decode(decoder, "7fffFFFFffffFFFF\r\nab");
  EXPECT_EQ(largest.kind, Kind::need_more);
  EXPECT_EQ(largest.data, "ab");
  EXPECT_EQ(refusal_of("8000000000000000\r\n"), Refusal::chunk_size_too_large);
  EXPECT_EQ(refusal_of("00000000000000001\r\n"), Refusal::chunk_size_too_large);
  EXPECT_EQ(refusal_of("0000000000000001\r\n"), Refusal::none);
}

TEST(Chunked, ReasonsAreExact) {
  EXPECT_EQ(refusal_of("\r\n"), Refusal::bad_line_end);
  EXPECT_EQ(refusal_of("g\r\n"), Refusal::bad_chunk_size);
  EXPECT_EQ(refusal_of(" 1\r\n"), Refusal::bad_chunk_size);
  EXPECT_EQ(refusal_of("1x"), Refusal::bad_chunk_size);
  EXPECT_EQ(refusal_of("1\n"), Refusal::bad_line_end);
  EXPECT_EQ(refusal_of("1\ra"), Refusal::bad_line_end);
  EXPECT_EQ(refusal_of("1 \r\n"), Refusal::bad_line_end);
  EXPECT_EQ(refusal_of("1 a"), Refusal::bad_chunk_extension);
  EXPECT_EQ(refusal_of("1;\""), Refusal::bad_chunk_extension);
  EXPECT_EQ(refusal_of("1;a=\"\r"), Refusal::bad_line_end);
  EXPECT_EQ(refusal_of("1\r\na\n"), Refusal::bad_chunk_end);
  EXPECT_EQ(refusal_of("1\r\na\rb"), Refusal::bad_chunk_end);
  EXPECT_EQ(refusal_of("0\r\n\n"), Refusal::bad_line_end);
  EXPECT_EQ(refusal_of("0\r\n X: y"), Refusal::folded_line);
  EXPECT_EQ(refusal_of("0\r\nX : y"), Refusal::space_before_colon);
  EXPECT_EQ(refusal_of("0\r\n: y"), Refusal::bad_field_name);
  EXPECT_EQ(refusal_of("0\r\nX\r\n"), Refusal::bad_line_end);
  EXPECT_EQ(refusal_of("0\r\nX: \x01"), Refusal::bad_field_value);
  EXPECT_EQ(refusal_of("0\r\nX: a\rb"), Refusal::bad_line_end);
}

TEST(Chunked, LimitsAreHitExactly) {
  const ChunkLimits limits{
      .line_max = 10, .extensions_max = 14, .trailers_bytes_max = 8, .trailers_max = 2};
  EXPECT_EQ(refusal_of("1;a=234567\r\na\r\n", limits), Refusal::none);
  EXPECT_EQ(refusal_of("1;a=2345678", limits), Refusal::chunk_line_too_long);
  EXPECT_EQ(refusal_of("1;a=234567\r\na\r\n1;a=23\r\n", limits), Refusal::none);
  EXPECT_EQ(refusal_of("1;a=234567\r\na\r\n1;a=234", limits), Refusal::chunk_extensions_too_long);
  EXPECT_EQ(refusal_of("0\r\na:bc\r\nd:ef\r\n\r\n", limits), Refusal::none);
  EXPECT_EQ(refusal_of("0\r\na:bc\r\nd:efg", limits), Refusal::trailers_too_long);
  EXPECT_EQ(refusal_of("0\r\na:\r\nb:\r\nc", limits), Refusal::too_many_trailers);
}

}  // namespace
}  // namespace weir::http
