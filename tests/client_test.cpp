// Tests the test client against a peer that sends exactly the given bytes.
#include "tests/client.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "weir/os/detail/io/socket.hpp"

namespace weir::tests::client_test {
namespace {

/// A connected client and the other end of its connection.
class ClientWithPeer : public testing::Test {
 protected:
  ClientWithPeer()
      : listener_(os::open_listener(os::Address::loopback(0)).value()),
        client_(os::local_address(listener_.get()).value()),
        peer_(accept()) {}

  os::Fd accept() const {
    pollfd wanted{listener_.get(), POLLIN, 0};
    ::poll(&wanted, 1, 5000);
    return os::accept_one(listener_.get()).value();
  }

  void send_to_client(std::string_view bytes) const {
    ASSERT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  /// Returns what the client reads from a peer that sends `bytes` and then ends.
  Result<Response> read_response(std::string_view bytes, std::string_view method = "GET") {
    Client client(os::local_address(listener_.get()).value());
    const os::Fd peer = accept();
    EXPECT_EQ(::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(os::shut_down_sending(peer.get()));
    return client.read(method);
  }

  std::string received() const {
    pollfd wanted{peer_.get(), POLLIN, 0};
    ::poll(&wanted, 1, 5000);
    std::string bytes(65536, '\0');
    const auto count = ::recv(peer_.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return bytes;
  }

  os::Fd listener_;
  Client client_;
  os::Fd peer_;
};

class ClientWithShortTimeout : public ClientWithPeer {
 protected:
  ClientWithShortTimeout() { client_.set_timeout(std::chrono::milliseconds(50)); }
};

TEST_F(ClientWithPeer, ReadsAResponseWithALengthAndLeavesTheNext) {
  send_to_client(
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-A: 1\r\nx-a:2 \r\n\r\nabcHTTP/1.1 404 \r\n"
      "Content-Length: 0\r\n\r\n");
  const Response first = client_.read().value();
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.reason, "OK");
  EXPECT_EQ(first.body, "abc");
  EXPECT_EQ(first.header("X-A"), "1, 2");
  EXPECT_TRUE(first.has_header("content-length"));
  EXPECT_FALSE(first.has_header("Date"));
  EXPECT_FALSE(first.ended_by_close);
  EXPECT_EQ(client_.read()->status, 404);
  EXPECT_EQ(client_.unread(), "");
}

TEST_F(ClientWithPeer, ReadsChunksAndTrailers) {
  send_to_client(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n"
      "0\r\nSum: 13\r\n\r\nrest");
  const Response response = client_.read().value();
  EXPECT_EQ(response.body, "abc0123456789");
  ASSERT_EQ(response.trailers.size(), 1u);
  EXPECT_EQ(response.trailers[0].first, "Sum");
  EXPECT_EQ(client_.unread(), "rest");
}

TEST_F(ClientWithPeer, ReadsBytesAsTheyTrickleIn) {
  std::thread trickle([&] {
    for (const char each : std::string("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")) {
      send_to_client(std::string(1, each));
    }
  });
  EXPECT_EQ(client_.read()->body, "hi");
  trickle.join();
}

TEST_F(ClientWithPeer, ABodyWithoutLengthEndsWithTheConnection) {
  const auto response = read_response("HTTP/1.1 200 OK\r\n\r\nall of it");
  EXPECT_EQ(response->body, "all of it");
  EXPECT_TRUE(response->ended_by_close);
}

TEST_F(ClientWithPeer, SomeResponsesHaveNoBody) {
  EXPECT_EQ(read_response("HTTP/1.1 204 No Content\r\n\r\n")->body, "");
  EXPECT_EQ(read_response("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n")->body, "");
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD")->body, "");
  EXPECT_EQ(read_response("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")->status, 100);
}

TEST_F(ClientWithPeer, ATruncatedResponseIsAnEndOfStream) {
  for (const std::string_view text :
       {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r", "HTTP/1.1 200 OK\r\nA: b\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"}) {
    EXPECT_EQ(read_response(text).error(), Errc::end_of_stream) << text;
  }
}

TEST_F(ClientWithPeer, RejectsInvalidHttp) {
  for (const std::string_view text :
       {"HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 200\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 No\r\n\r\n", "http/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\n\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"}) {
    const auto response = read_response(text);
    ASSERT_FALSE(response) << text;
    EXPECT_EQ(response.error(), Errc::bad_input) << text;
  }
}

TEST_F(ClientWithPeer, ExchangeSkipsInterimResponses) {
  send_to_client(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: a\r\n\r\n"
      "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client_.exchange(post("/a", "body"))->status, 201);
  EXPECT_EQ(received(), "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody");
}

TEST_F(ClientWithPeer, APipelineReadsWhileItSends) {
  constexpr std::size_t count = 100'000;
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
  // This peer answers after each kilobyte, and reads no more until its answers are sent.
  std::thread peer([&] {
    const std::size_t request = get("/").size();
    std::size_t received = 0;
    std::size_t answered = 0;
    std::string bytes(1024, '\0');
    while (answered < count) {
      pollfd readable{peer_.get(), POLLIN, 0};
      ::poll(&readable, 1, 5000);
      received += static_cast<std::size_t>(::recv(peer_.get(), bytes.data(), bytes.size(), 0));
      for (; answered < received / request; ++answered) {
        std::string_view left = answer;
        while (!left.empty()) {
          pollfd writable{peer_.get(), POLLOUT, 0};
          ::poll(&writable, 1, 5000);
          const auto sent = ::send(peer_.get(), left.data(), left.size(), MSG_NOSIGNAL);
          if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
        }
      }
    }
  });
  const auto responses = client_.pipeline(get("/"), count);
  peer.join();
  ASSERT_TRUE(responses) << responses.error().message();
  EXPECT_EQ(responses->size(), count);
  EXPECT_EQ(responses->back().body, "x");
}

TEST_F(ClientWithPeer, PiecesArriveWhole) {
  ASSERT_TRUE(client_.send_in_pieces("one two three", 2));
  client_.finish_sending();
  std::string all;
  for (std::string part = received(); !part.empty(); part = received()) all += part;
  EXPECT_EQ(all, "one two three");
  send_to_client("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client_.read()->status, 200) << "receiving continues after finish_sending()";
}

TEST_F(ClientWithPeer, ThePeerSeesAReset) {
  client_.reset();
  pollfd wanted{peer_.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wanted, 1, 5000), 1);
  char byte = 0;
  EXPECT_EQ(::recv(peer_.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(ClientWithPeer, ReportsAResetOfThePeer) {
  ASSERT_TRUE(os::set_linger(peer_.get(), std::chrono::seconds(0)));
  peer_.close();
  EXPECT_EQ(client_.read().error(), system_error(ECONNRESET));
}

TEST_F(ClientWithPeer, ExpectEndFailsIfMoreBytesCome) {
  send_to_client("late");
  ASSERT_TRUE(os::shut_down_sending(peer_.get()));
  EXPECT_EQ(client_.expect_end().error(), Errc::bad_input);
  EXPECT_TRUE(client_.expect_end());
}

TEST_F(ClientWithShortTimeout, ASilentPeerCausesATimeout) {
  send_to_client("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_EQ(client_.read().error(), Errc::timed_out);
  EXPECT_EQ(client_.expect_end().error(), Errc::timed_out);
}

TEST_F(ClientWithShortTimeout, APeerThatDoesNotReadCausesATimeout) {
  EXPECT_EQ(client_.send(std::string(64 << 20, 'x')).error(), Errc::timed_out);
}

TEST(Client, ConnectingToAClosedPortThrows) {
  os::Fd listener = os::open_listener(os::Address::loopback(0)).value();
  const os::Address address = os::local_address(listener.get()).value();
  listener.close();
  EXPECT_THROW(Client{address}, std::system_error);
}

}  // namespace
}  // namespace weir::tests::client_test
