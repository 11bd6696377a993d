// Tests of the contract of BodySink, through a server.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "weir/http/message/body.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/combinators.hpp"

namespace weir::http {
namespace {

class BodySinkTest : public HttpTest {};

#ifndef NDEBUG
Task<Result<>> write_twice(BodySink& sink, std::string piece) {
  auto one = sink.write(piece);
  auto other = sink.write(piece);
  static_cast<void>(co_await all(std::move(one), std::move(other)));
  co_return {};
}

// The client does not read, so the first call waits.
TEST_F(BodySinkTest, AssertsThatCallsDoNotOverlap) {
  routes_.get("/", [] { return stream(text_type, write_twice, std::string(1'000'000, 'x')); });
  serve();
  MemoryPeer& peer = connect();
  const auto ask = [&] {
    peer.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    settle();
  };
  EXPECT_DEATH(ask(), "writing_");
}
#endif

}  // namespace
}  // namespace weir::http
