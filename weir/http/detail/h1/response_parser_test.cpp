// Tests of the parser of responses.
#include "weir/http/detail/h1/response_parser.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "weir/http/syntax/parse_error.hpp"

namespace weir::http::response_parser_test {
namespace {

using Kind = ResponseEvent::Kind;

std::string describe(Kind kind, const ReceivedResponseHead& head) {
  std::string text(kind == Kind::interim ? "interim " : "head ");
  text += std::to_string(code_of(head.status()));
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField header = head.header_at(index);
    text.append(" [").append(header.name).append(":").append(header.value).append("]");
  }
  return text + "; ";
}

/// A client that feeds a parser with pieces of a text, and notes the events.
class Reader {
 public:
  Reader(Method method, const ResponseLimits& limits) : parser_(limits) { parser_.begin(method); }

  /// Receives `piece`. Each call of the parser gets a copy of exactly its input, so that the
  /// address sanitizer detects every overrun.
  void receive(std::string_view piece) {
    unread_ += piece;
    while (!failed_) {
      const std::unique_ptr<char[]> copy(new char[unread_.size()]);
      if (!unread_.empty()) std::memcpy(copy.get(), unread_.data(), unread_.size());
      const ResponseEvent event = parser_.next({copy.get(), unread_.size()});
      note(event);
      unread_.erase(0, event.consumed);
      if (event.kind == Kind::need_more) return;
    }
  }

  /// Returns the events, with the whole body as one.
  std::string trace() { return trace_ + open_body(); }
  ResponseParser& parser() { return parser_; }

 private:
  void note(const ResponseEvent& event) {
    switch (event.kind) {
      case Kind::need_more:
        break;
      case Kind::data:
        EXPECT_FALSE(event.data.empty());
        body_ += event.data;
        break;
      case Kind::interim:
      case Kind::head:
        trace_ += describe(event.kind, parser_.head());
        break;
      case Kind::end:
        trace_ += open_body() + (parser_.reusable() ? "end" : "end, close");
        body_.clear();
        break;
      case Kind::error:
        trace_ += open_body() + std::string(name_of(event.error));
        body_.clear();
        failed_ = true;
    }
  }
  std::string open_body() const { return body_.empty() ? "" : "body " + body_ + "; "; }

  ResponseParser parser_;
  std::string unread_;
  std::string body_;
  std::string trace_;
  bool failed_ = false;
};

/// Returns the trace of `text`, after checking that it is equal for every pair of pieces, and byte
/// by byte.
std::string trace_of(std::string_view text, Method method = Method::get,
                     const ResponseLimits& limits = {}) {
  Reader whole(method, limits);
  whole.receive(text);
  const std::string expected = whole.trace();
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Reader pieces(method, limits);
    pieces.receive(text.substr(0, cut));
    pieces.receive(text.substr(cut));
    EXPECT_EQ(pieces.trace(), expected) << text << "\ncut at " << cut;
  }
  Reader bytes(method, limits);
  for (const char each : text) bytes.receive({&each, 1});
  EXPECT_EQ(bytes.trace(), expected) << text;
  return expected;
}

TEST(ResponseParser, ReadsABodyWithALength) {
  EXPECT_EQ(trace_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Empty:\r\n\r\nhello"),
            "head 200 [Content-Length:5] [X-Empty:]; body hello; end");
  EXPECT_EQ(trace_of("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            "head 404 [Content-Length:0]; end");
}

TEST(ResponseParser, ReadsChunksAndTrailers) {
  const std::string_view text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nSum: 7\r\n\r\n";
  EXPECT_EQ(trace_of(text), "head 200 [Transfer-Encoding:chunked]; body abcdefg; end");
  Reader reader(Method::get, {});
  reader.receive(text);
  EXPECT_EQ(reader.parser().trailers().get("sum"), "7");
}

TEST(ResponseParser, ReadsABodyUntilTheConnectionCloses) {
  Reader reader(Method::get, {});
  reader.receive("HTTP/1.1 200 OK\r\n\r\nall of it");
  EXPECT_TRUE(reader.parser().reads_until_close());
  EXPECT_EQ(reader.trace(), "head 200; body all of it; ");
  EXPECT_TRUE(reader.parser().finish_at_close());
  EXPECT_FALSE(reader.parser().reusable());
}

TEST(ResponseParser, TellsACutFromAnEnd) {
  const std::string_view text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
  for (std::size_t size = 0; size < text.size(); ++size) {
    Reader reader(Method::get, {});
    reader.receive(text.substr(0, size));
    EXPECT_FALSE(reader.parser().finish_at_close()) << size;
  }
  const std::string_view chunks =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n";
  Reader reader(Method::get, {});
  reader.receive(chunks);
  EXPECT_FALSE(reader.parser().finish_at_close());
}

TEST(ResponseParser, ResponsesWithoutABodyEndAfterTheirHead) {
  const std::string_view head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(trace_of(head, Method::head), "head 200 [Content-Length:5]; end");
  EXPECT_EQ(trace_of("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
            "head 304 [Content-Length:5]; end");
  EXPECT_EQ(trace_of("HTTP/1.1 204 No Content\r\n\r\n"), "head 204; end");
  EXPECT_EQ(trace_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Method::head),
            "head 200 [Transfer-Encoding:chunked]; end");
}

TEST(ResponseParser, AnAnnouncedBodyAfter204ClosesTheConnection) {
  EXPECT_EQ(trace_of("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
            "head 204 [Content-Length:5]; end, close");
  EXPECT_EQ(trace_of("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
            "head 204 [Content-Length:0]; end");
}

TEST(ResponseParser, ATunnelIsNotReused) {
  EXPECT_EQ(trace_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::connect),
            "head 200 [Content-Length:5]; end, close");
  EXPECT_EQ(trace_of("HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno", Method::connect),
            "head 407 [Content-Length:2]; body no; end");
}

TEST(ResponseParser, ConnectionAndVersionDecideReuse) {
  const auto reusable = [](std::string_view start) {
    return trace_of(std::string(start) + "Content-Length: 0\r\n\r\n").ends_with("end");
  };
  EXPECT_TRUE(reusable("HTTP/1.1 200 OK\r\n"));
  EXPECT_FALSE(reusable("HTTP/1.1 200 OK\r\nConnection: close\r\n"));
  EXPECT_FALSE(reusable("HTTP/1.0 200 OK\r\n"));
  EXPECT_TRUE(reusable("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"));
}

TEST(ResponseParser, BytesAfterTheEndAreUnexpected) {
  EXPECT_EQ(trace_of("HTTP/1.1 204 No Content\r\n\r\nx"), "head 204; endunexpected_response");
  EXPECT_EQ(trace_of("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"),
            "head 200 [Content-Length:1]; body a; endunexpected_response");
}

TEST(ResponseParser, AResponseBeforeTheRequestIsUnexpected) {
  ResponseParser parser;
  EXPECT_EQ(parser.next("").kind, Kind::need_more);
  const ResponseEvent event = parser.next("HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_EQ(event.kind, Kind::error);
  EXPECT_EQ(event.error, ParseError::unexpected_response);
}

TEST(ResponseParser, ReadsOneResponseAfterTheOther) {
  Reader reader(Method::head, {});
  const std::string_view text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
  reader.receive(text);
  reader.parser().begin(Method::get);
  EXPECT_FALSE(reader.parser().reusable());
  reader.receive(text);
  reader.receive("a");
  EXPECT_EQ(reader.trace(),
            "head 200 [Content-Length:1]; endhead 200 [Content-Length:1]; body a; end");
}

TEST(ResponseParser, SkipsInterimResponsesUpToTheLimit) {
  const std::string interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
  const std::string last = "HTTP/1.1 204 No Content\r\n\r\n";
  const ResponseLimits limits{.interim_max = 2};
  const std::string seen = "interim 103 [Link:</a>]; ";
  EXPECT_EQ(trace_of(interim + interim + last, Method::get, limits), seen + seen + "head 204; end");
  EXPECT_EQ(trace_of(interim + interim + interim + last, Method::get, limits),
            seen + seen + "too_many_interim");
  EXPECT_EQ(trace_of("HTTP/1.1 100 Continue\r\nContent-Length: 4\r\n\r\n" + last),
            "interim 100 [Content-Length:4]; head 204; end");
}

TEST(ResponseParser, TheLimitOfInterimResponsesHoldsForEachResponse) {
  const std::string text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
  Reader reader(Method::get, {.interim_max = 1});
  for (int round = 0; round < 3; ++round) {
    if (round > 0) reader.parser().begin(Method::get);
    reader.receive(text);
  }
  EXPECT_EQ(reader.trace(),
            "interim 100; head 204; endinterim 100; head 204; endinterim 100; head 204; end");
}

TEST(ResponseParser, RejectsAnUpgradeThatWasNotRequested) {
  EXPECT_EQ(trace_of("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
            "unexpected_upgrade");
}

TEST(ResponseParser, RejectsAmbiguousLengths) {
  const auto trace = [](std::string_view lines) {
    return trace_of("HTTP/1.1 200 OK\r\n" + std::string(lines) + "\r\n");
  };
  EXPECT_EQ(trace("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), "both_lengths");
  EXPECT_EQ(trace("Content-Length: 1\r\nContent-Length: 1\r\n"), "repeated_content_length");
  EXPECT_EQ(trace("Content-Length: 1, 1\r\n"), "repeated_content_length");
  EXPECT_EQ(trace("Content-Length: +1\r\n"), "bad_content_length");
  EXPECT_EQ(trace("Transfer-Encoding: gzip\r\n"), "unknown_transfer_coding");
  EXPECT_EQ(trace("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            "repeated_transfer_encoding");
  EXPECT_EQ(trace_of("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "unexpected_transfer_encoding");
}

TEST(ResponseParser, RejectsABadStatusLine) {
  EXPECT_EQ(trace_of("SSH-2.0-OpenSSH\r\n"), "bad_version");
  EXPECT_EQ(trace_of("\r\nHTTP/1.1 200 OK\r\n\r\n"), "bad_line_end");
  EXPECT_EQ(trace_of("HTTP/2.0 200 OK\r\n\r\n"), "unsupported_version");
  EXPECT_EQ(trace_of("HTTP/1.10 200 OK\r\n\r\n"), "bad_status");
  EXPECT_EQ(trace_of("HTTP/1.1  200 OK\r\n\r\n"), "bad_status");
  for (const std::string_view status : {"099", "20", "2000", "2x0", "-20"}) {
    EXPECT_EQ(trace_of("HTTP/1.1 " + std::string(status) + " Reason\r\n\r\n"), "bad_status")
        << status;
  }
  EXPECT_EQ(trace_of("HTTP/1.1 200\tOK\r\n\r\n"), "bad_status");
  EXPECT_EQ(trace_of("HTTP/1.1 200 O\x7fK\r\n\r\n"), "bad_status");
  EXPECT_EQ(trace_of("HTTP/1.1 200 OK\n\n"), "bad_line_end");
  EXPECT_EQ(trace_of("HTTP/1.1 200 OK\rX"), "bad_line_end");
  EXPECT_EQ(trace_of("HTTP/1.1\r\n"), "bad_line_end");
}

TEST(ResponseParser, AcceptsEveryReasonPhrase) {
  EXPECT_EQ(trace_of("HTTP/1.1 299\r\n\r\n"), "head 299; ");
  EXPECT_EQ(trace_of("HTTP/1.1 100 \r\n\r\n"), "interim 100; ");
  EXPECT_EQ(trace_of("HTTP/1.9 599 tab\t\xff\r\n\r\n"), "head 599; ");
}

TEST(ResponseParser, ChecksHeaderLinesAsInRequests) {
  const auto trace = [](std::string_view lines) {
    return trace_of("HTTP/1.1 200 OK\r\n" + std::string(lines) + "\r\n");
  };
  EXPECT_EQ(trace("A : b\r\n"), "space_before_colon");
  EXPECT_EQ(trace("A: b\r\n c\r\n"), "folded_line");
  EXPECT_EQ(trace("A: b\n"), "bad_line_end");
  EXPECT_EQ(trace("A: \x01\r\n"), "bad_header_value");
  EXPECT_EQ(trace("Connection: a b\r\n"), "bad_connection");
}

TEST(ResponseParser, HeadersOfRequestsMeanNothing) {
  EXPECT_EQ(trace_of("HTTP/1.1 204 N\r\nHost: a b\r\nHost: c\r\nExpect: z\r\nUpgrade: h2c\r\n\r\n"),
            "head 204 [Host:a b] [Host:c] [Expect:z] [Upgrade:h2c]; end");
}

TEST(ResponseParser, LimitsTheHead) {
  ResponseLimits limits;
  limits.head = {.request_line_max = 20, .headers_bytes_max = 16, .headers_max = 2};
  const auto trace = [&](std::string_view text) { return trace_of(text, Method::get, limits); };
  EXPECT_EQ(trace("HTTP/1.1 204 a234567\r\n\r\n"), "head 204; end");
  EXPECT_EQ(trace("HTTP/1.1 204 a2345678\r\n\r\n"), "status_line_too_long");
  EXPECT_EQ(trace("HTTP/1.1 204 N\r\nA:1\r\nB:2\r\n\r\n"), "head 204 [A:1] [B:2]; end");
  EXPECT_EQ(trace("HTTP/1.1 204 N\r\nA:1\r\nB:2\r\nC:3\r\n\r\n"), "too_many_headers");
  EXPECT_EQ(trace("HTTP/1.1 204 N\r\nA:123456789\r\n\r\n"), "head 204 [A:123456789]; end");
  EXPECT_EQ(trace("HTTP/1.1 204 N\r\nA:1234567890123\r\n\r\n"), "headers_too_long");
}

TEST(ResponseParser, RejectsABrokenChunk) {
  EXPECT_EQ(trace_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab"),
            "head 200 [Transfer-Encoding:chunked]; body a; bad_chunk_end");
}

}  // namespace
}  // namespace weir::http::response_parser_test
