// Tests of Request.
#include "weir/http/message/request.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http/syntax/parse_error.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::http::request_test {
namespace {

class RequestTest : public LoopTest {};

/// A body that arrives in two pieces, or fails with an error.
class PieceSource : public BodySource {
 public:
  std::error_code error;  ///< of each read, if it is not zero
  Headers fields;

  Task<Result<Bytes>> read_piece() override {
    if (error) co_return fail(error);
    co_return to_bytes(std::string_view(count_++ == 0 ? "piece" : ""));
  }
  Task<Result<std::string_view>> collect() override {
    if (error) co_return fail(error);
    co_return std::string_view("whole");
  }
  const Headers& trailers() const noexcept override { return fields; }
  os::Address peer_address() const override { return os::Address::loopback(7); }

 private:
  int count_ = 0;
};

TEST_F(RequestTest, GivesThePartsOfItsHead) {
  TextRequest text("BREW /a%20b?x=1&y=%41+b&x=2&z", {}, "X-Name: value\r\nx-name: other\r\n");
  const Request& request = text.request();
  EXPECT_EQ(request.method(), Method::other);
  EXPECT_EQ(request.method_text(), "BREW");
  EXPECT_EQ(request.path(), "/a b");
  EXPECT_EQ(request.path_text(), "/a%20b");
  EXPECT_EQ(request.query_text(), "x=1&y=%41+b&x=2&z");
  EXPECT_EQ(request.query("x"), "1");
  EXPECT_EQ(request.query("y"), "A b");
  EXPECT_EQ(request.query("z"), "");
  EXPECT_FALSE(request.query("w").has_value());
  EXPECT_EQ(request.authority(), "test");
  EXPECT_EQ(request.header("X-NAME"), "value");
  EXPECT_FALSE(request.header("X-Nam").has_value());
  EXPECT_EQ(&request.head(), &text.head());
  EXPECT_EQ(request.id(), "");
}

TEST_F(RequestTest, OptionsForTheServerHasThePathAsterisk) {
  EXPECT_EQ(TextRequest("OPTIONS *").request().path(), "*");
  EXPECT_EQ(TextRequest("OPTIONS http://a.test").request().path(), "*");
  EXPECT_EQ(TextRequest("OPTIONS http://a.test/").request().path(), "/");
}

TEST_F(RequestTest, ReadsItsBody) {
  const TextRequest text("GET /");
  PieceSource source;
  ASSERT_TRUE(source.fields.add("X-Sum", "1"));
  Request request(text.head(), source);
  EXPECT_EQ(run(request.body()).value(), "whole");
  EXPECT_EQ(run(request.body_view()).value(), "whole");
  EXPECT_EQ(request.trailers().get("x-sum"), "1");
  EXPECT_EQ(request.peer_address(), os::Address::loopback(7));
}

TEST_F(RequestTest, ReadsACollectedTextOnceMore) {
  const TextRequest text("GET /");
  PieceSource pieces;
  Request by_pieces(text.head(), pieces);
  EXPECT_FALSE(pieces.was_read());
  EXPECT_EQ(to_text(run(by_pieces.read()).value()), "piece");
  EXPECT_TRUE(pieces.was_read());
  EXPECT_EQ(to_text(run(by_pieces.read()).value()), "");
  PieceSource source;
  Request request(text.head(), source);
  EXPECT_EQ(run(request.body_view()).value(), "whole");
  EXPECT_TRUE(source.was_read());
  EXPECT_EQ(run(request.body_view()).value(), "whole");
  EXPECT_EQ(to_text(run(request.read()).value()), "whole");
  EXPECT_EQ(to_text(run(request.read()).value()), "");
  EXPECT_EQ(run(request.body()).value(), "whole");
  EXPECT_EQ(to_text(run(request.read()).value()), "") << "it is read once";
  PieceSource broken;
  Request failed(text.head(), broken);
  broken.error = make_error_code(Errc::cancelled);
  EXPECT_EQ(run(failed.body_view()).error(), Errc::cancelled);
  EXPECT_EQ(run(failed.read()).error(), Errc::cancelled);
  broken.error = {};
  EXPECT_EQ(to_text(run(failed.read()).value()), "whole");
}

TEST_F(RequestTest, GivesTheErrorOfItsBody) {
  const TextRequest text("GET /");
  PieceSource source;
  Request request(text.head(), source);
  for (const std::error_code error :
       {std::error_code(ParseError::body_too_large), make_error_code(Errc::end_of_stream)}) {
    source.error = error;
    EXPECT_EQ(run(request.body()).error(), error);
    EXPECT_EQ(run(request.body_view()).error(), error);
    EXPECT_EQ(run(request.read()).error(), error);
  }
}

}  // namespace
}  // namespace weir::http::request_test
