// Tests the example of server-sent events over real sockets, on every backend.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <string_view>

#include "tests/client.hpp"
#include "tests/server.hpp"

namespace weir::tests::server_sent_events_test {
namespace {

class ExampleServerSentEvents : public EachBackend {};

TEST_P(ExampleServerSentEvents, EachClientSeesEachMessageUntilTheDrain) {
  Server server("server_sent_events", GetParam());
  Client early = server.connect();
  ASSERT_TRUE(early.send(get("/events")));
  Client poster = server.connect();
  for (const std::string_view text : {"one\ntwo", "three"}) {
    const auto posted = poster.exchange(post("/messages", text));
    ASSERT_TRUE(posted) << posted.error().message();
    EXPECT_EQ(posted->status, 204);
  }
  Client late = server.connect();
  ASSERT_TRUE(late.send("GET /events HTTP/1.1\r\nHost: a\r\nLast-Event-ID: 1\r\n\r\n"));
  ASSERT_TRUE(poster.exchange(get("/")));
  server.process().signal(SIGTERM);
  const auto all = early.read();
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_EQ(all->header("Content-Type"), "text/event-stream");
  EXPECT_EQ(all->body, ":\n\nid: 1\ndata: one\ndata: two\n\nid: 2\ndata: three\n\n");
  const auto rest = late.read();
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_EQ(rest->body, ":\n\nid: 2\ndata: three\n\n");
  EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
}

INSTANTIATE_TEST_SUITE_P(On, ExampleServerSentEvents, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::server_sent_events_test
