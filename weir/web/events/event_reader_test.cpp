// Tests of events from the server to the client of Weir, by each protocol.
#include "weir/web/events/event_reader.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/client/client.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sleep.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"
#include "weir/web/events/events.hpp"

namespace weir::http::event_reader_test {
namespace {

using namespace std::chrono_literals;

/// Sends three events that follow the last one of the client, a second apart.
Task<Result<>> count_on(EventStream& stream) {
  int number = std::atoi(std::string(stream.last_event_id()).c_str());
  for (int sent_count = 0; sent_count < 3; ++sent_count) {
    const std::string id = std::to_string(++number);
    ServerSentEvent event;
    event.data = "line\nof " + id;
    event.name = "count";
    event.id = id;
    if (auto sent = co_await stream.send(event); !sent) co_return sent;
    if (auto slept = co_await sleep(1s); !slept) co_return slept;
  }
  co_return {};
}

class EventReaderTest : public HttpTest {
 protected:
  EventReaderTest() {
    routes_.get("/count", [](const Request& request) {
      EventStreamOptions options;
      options.retry = 700ms;
      return events(request, options, count_on);
    });
    routes_.get("/text", [] { return text("data: no\n\n"); });
    routes_.get("/none", [] { return no_content(); });
    routes_.get("/long", [](const Request& request) {
      const auto once = [](EventStream& stream) -> Task<Result<>> {
        co_return co_await stream.send(std::string(2000, 'x'));
      };
      return events(request, once);
    });
  }

  /// Reads the stream to its end, reconnects, and reads on.
  static Task<> follow(Client& client, std::string url) {
    std::string last_id;
    std::string seen;
    for (int connection = 0; connection < 2; ++connection) {
      ClientRequest request(Method::get, url);
      if (!last_id.empty()) request.set_header("Last-Event-ID", last_id);
      auto response = co_await client.send(std::move(request));
      EXPECT_TRUE(response);
      if (!response) co_return;
      auto reader = EventReader::open(std::move(*response));
      EXPECT_TRUE(reader);
      if (!reader) co_return;
      auto event = co_await reader->read();
      while (event) {
        EXPECT_EQ(event->name, "count");
        EXPECT_EQ(event->data, "line\nof " + event->id);
        seen += event->id + " ";
        event = co_await reader->read();
      }
      EXPECT_EQ(event.error(), Errc::end_of_stream);
      EXPECT_EQ(reader->retry(), 700ms);
      last_id = reader->last_event_id();
    }
    EXPECT_EQ(seen, "1 2 3 4 5 6 ");
  }
  static Task<std::string> open_error(Client& client, std::string url) {
    auto response = co_await client.get(url);
    EXPECT_TRUE(response);
    if (!response) co_return "no response";
    auto reader = EventReader::open(std::move(*response), 1000);
    if (!reader) co_return reader.error().message();
    const auto event = co_await reader->read();
    co_return event ? event->data : event.error().message();
  }
  template <class Use>
  void with_client(ClientOptions options, const Use& use) {
    serve();
    {
      Client client(std::move(options));
      weir::run(*loop_, use(client));
    }
    settle();
  }
};

TEST_F(EventReaderTest, ContinuesOverHttp1) {
  with_client({}, [](Client& client) { return follow(client, "http://127.0.0.1/count"); });
}

TEST_F(EventReaderTest, ContinuesOverHttp2) {
  plain_http2_ = PlainHttp2::only;
  ClientOptions options;
  options.plain_http2 = true;
  with_client(std::move(options),
              [](Client& client) { return follow(client, "http://127.0.0.1/count"); });
}

TEST_F(EventReaderTest, ContinuesOverTls) {
  tls::SelfSigned certificate;
  certificate.names = {"127.0.0.1"};
  certificate.not_before = platform_.wall_time();
  const tls::Identity identity = tls::Identity::self_signed(certificate).value();
  tls::ServerOptions server_options;
  server_options.identities = {identity};
  tls_ = std::make_shared<tls::Server>(std::move(server_options));
  tls::ClientOptions client_options;
  client_options.trust = {.system = false, .files = {}, .pem = identity.chain()};
  ClientOptions options;
  options.tls = std::make_shared<tls::Client>(std::move(client_options));
  with_client(std::move(options),
              [](Client& client) { return follow(client, "https://127.0.0.1:80/count"); });
}

TEST_F(EventReaderTest, OtherResponsesAreRefused) {
  with_client({}, [](Client& client) -> Task<> {
    const auto of = [](Errc error) { return make_error_code(error).message(); };
    EXPECT_EQ(co_await open_error(client, "http://127.0.0.1/text"), of(Errc::bad_input));
    EXPECT_EQ(co_await open_error(client, "http://127.0.0.1/none"), of(Errc::closed));
    EXPECT_EQ(co_await open_error(client, "http://127.0.0.1/no"),
              error_of(Status::not_found).message());
    EXPECT_EQ(co_await open_error(client, "http://127.0.0.1/long"), of(Errc::limit_reached));
  });
}

}  // namespace
}  // namespace weir::http::event_reader_test
