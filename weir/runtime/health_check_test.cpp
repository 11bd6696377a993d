// Tests of the client of health checks, with a server on loopback.
#include "weir/runtime/health_check.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>

#include "weir/os/detail/io/socket.hpp"

namespace weir::health_check_test {
namespace {

/// Returns the answer to a check of a server that sends these bytes and closes.
HealthAnswer ask(std::string_view response) {
  const auto listener = os::open_listener(os::Address::loopback(0), {});
  const Endpoint endpoint = os::local_address(listener->get()).value();
  const std::jthread server([&] {
    pollfd waited{.fd = listener->get(), .events = POLLIN, .revents = 0};
    ::poll(&waited, 1, 10'000);
    const auto connection = os::accept_one(listener->get());
    waited.fd = connection->get();
    ::poll(&waited, 1, 10'000);
    std::array<char, 4096> room;
    EXPECT_GT(::recv(connection->get(), room.data(), room.size(), 0), 0);
    ::send(connection->get(), response.data(), response.size(), MSG_NOSIGNAL);
  });
  return ask_health(endpoint);
}

TEST(HealthCheck, TellsTheStatusAndTheFirstLine) {
  const HealthAnswer ready = ask("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{\"status\":\"ok\"}\nmore");
  EXPECT_TRUE(ready.ready);
  EXPECT_EQ(ready.text, "200: {\"status\":\"ok\"}");
  const HealthAnswer draining = ask("HTTP/1.1 503 Service Unavailable\r\n\r\ndraining");
  EXPECT_FALSE(draining.ready);
  EXPECT_EQ(draining.text, "503: draining");
}

TEST(HealthCheck, TakesOnlyThreeDigitsForAStatus) {
  for (const std::string_view response :
       {"HTTP/1.1 \x1b"
        "c2 OK\r\n\r\nbody",
        "HTTP/1.1 2", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 +20\r\n\r\n", "SSH-2.0-x\r\n", ""}) {
    const HealthAnswer answer = ask(response);
    EXPECT_FALSE(answer.ready) << response;
    EXPECT_TRUE(answer.text.ends_with(": this is not a plain HTTP server")) << answer.text;
  }
}

TEST(HealthCheck, WritesPrintableText) {
  EXPECT_EQ(ask("HTTP/1.1 200 OK\r\n\r\nok \xc2\x9b"
                "31mRED\xe2\x80\xae gnp.exe \x9b"
                "5n \xff\x1b[2J caf\xc3\xa9")
                .text,
            R"(200: ok \xc2\x9b31mRED\xe2\x80\xae gnp.exe \x9b5n \xff\x1b[2J )"
            "caf\xc3\xa9");
}

}  // namespace
}  // namespace weir::health_check_test
