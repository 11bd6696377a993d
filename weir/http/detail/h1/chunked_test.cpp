// Tests of the chunked-body decoder.
#include "weir/http/detail/h1/chunked.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace weir::http {
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
                    "Expect", "TE", "Trailer"}) {
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

}  // namespace
}  // namespace weir::http
