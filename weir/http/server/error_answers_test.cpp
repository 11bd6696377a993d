// Tests of the statuses of errors.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http/router/router.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

class ErrorAnswersTest : public HttpTest {
 protected:
  ErrorAnswersTest() {
    routes_.post("/read", [](Request& request) -> Task<Result<Response>> {
      WEIR_CO_TRY(const std::string body, co_await request.body());
      co_return text(body);
    });
    routes_.post("/own-timeout", []() -> Task<Result<Response>> {
      WEIR_CO_TRY(co_await timeout(2s, sleep(1h)));
      co_return text("late");
    });
    const auto endless = []() -> Task<Result<Response>> {
      WEIR_CO_TRY(co_await sleep(1h));
      co_return text("late");
    };
    routes_.post("/route-timeout", endless, {.timeout = 2s});
    for (const ClientError error :
         {ClientError::connect_failed, ClientError::head_timed_out, ClientError::queue_timed_out}) {
      const auto pattern = Pattern::parse("/client/" + std::string(name_of(error)));
      std::ignore = routes_.post(*pattern, [error]() -> Result<Response> { return fail(error); });
    }
  }
  static std::string post_of(std::string_view path, std::string_view framing) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(framing) +
           "\r\n\r\n";
  }
  static std::string answers(const MemoryPeer& peer) {
    return sim::statuses_of(sim::parse_http_responses(peer.received()));
  }

  static constexpr std::string_view ten_bytes = "Content-Length: 10";
  static constexpr std::string_view no_bytes = "Content-Length: 0";
};

TEST_F(ErrorAnswersTest, TheStatusOfATimeoutNamesTheSideThatWasLate) {
  serve();
  MemoryPeer& slow = connect();
  talk(slow, post_of("/read", ten_bytes));
  pass(5s);
  EXPECT_EQ(answers(slow), "408");
  EXPECT_TRUE(platform_.logged().empty());
  MemoryPeer& peer = connect();
  talk(peer, post_of("/route-timeout", no_bytes));
  pass(2s);
  EXPECT_EQ(answers(peer), "503");
  EXPECT_TRUE(platform_.logged().empty());
  talk(peer, post_of("/own-timeout", no_bytes));
  pass(2s);
  EXPECT_EQ(answers(peer), "503 504");
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_EQ(platform_.logged()[0], "weir: POST /own-timeout: handler failed: " +
                                       make_error_code(Errc::timed_out).message());
}

TEST_F(ErrorAnswersTest, AnErrorOfAClientNamesTheOtherServer) {
  serve();
  EXPECT_EQ(statuses(post_of("/client/connect_failed", no_bytes)), "502");
  EXPECT_EQ(statuses(post_of("/client/head_timed_out", no_bytes)), "504");
  EXPECT_EQ(statuses(post_of("/client/queue_timed_out", no_bytes)), "503");
  ASSERT_EQ(platform_.logged().size(), 3U);
  EXPECT_EQ(platform_.logged()[1],
            "weir: POST /client/head_timed_out: handler failed: head_timed_out");
}

}  // namespace
}  // namespace weir::http
