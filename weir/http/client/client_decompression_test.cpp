// Tests of compressed responses in the client.
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/compression/compressor_pool.hpp"
#include "weir/compression/test/contents_fixture.hpp"
#include "weir/http/test/client_fixture.hpp"

namespace weir::http::client_decompression_test {
namespace {

using compression::available_codings;
using compression::Coding;
using compression::compressed;
using compression::words;

class ClientDecompression : public ClientFixture {
 protected:
  static ClientOptions options() {
    ClientOptions with;
    with.decompression = compression::DecompressLimits{.output_max = 1'000'000};
    return with;
  }
  static Step answer(std::string_view coding, const std::string& body) {
    Step step;
    step.answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: ";
    step.answer.append(coding).append("\r\nContent-Length: ");
    step.answer.append(std::to_string(body.size())).append("\r\n\r\n").append(body);
    return step;
  }
};

TEST_F(ClientDecompression, DecompressesAndHidesTheCoding) {
  for (const Coding coding : available_codings()) {
    std::vector<std::vector<Step>> scripts{
        {answer(name_of(coding), compressed(coding, words(300'000)))}};
    with_server(std::move(scripts), options(), [&](Client& client) -> Task<> {
      auto response = co_await client.get("http://127.0.0.1:81/");
      EXPECT_TRUE(response.has_value());
      if (!response) co_return;
      EXPECT_EQ(response->header("content-encoding"), std::nullopt);
      EXPECT_EQ(response->header("content-length"), std::nullopt);
      EXPECT_EQ(response->header("content-type"), "text/plain");
      EXPECT_EQ(response->header_count(), 1u);
      const auto body = co_await response->body();
      EXPECT_TRUE(body && *body == words(300'000)) << name_of(coding);
      EXPECT_EQ(client.idle_count(), 1u);
    });
    ASSERT_EQ(server_of_scripts_.requests.size(), 1u);
    EXPECT_NE(server_of_scripts_.requests[0].find("Accept-Encoding: "), std::string::npos);
  }
}

// A short input can decode to many pieces, for which no byte need arrive.
TEST_F(ClientDecompression, TheWholeTimeoutEndsABodyThatIsAlwaysThere) {
  const std::string data = compressed(Coding::gzip, std::string(900'000, 'x'));
  with_server({{answer("gzip", data)}}, options(), [](Client& client) -> Task<> {
    co_await expect_whole_timeout(client, ClientRequest(Method::get, "http://127.0.0.1:81/"));
  });
}

// A digest in a trailer names the bytes of the coding (RFC 9530 §3).
TEST_F(ClientDecompression, HidesTrailersThatDescribeTheCoding) {
  const std::string data = compressed(Coding::gzip, words(100));
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), data.size(), 16).ptr;
  Step step;
  step.answer = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" +
                std::string(size.data(), end) + "\r\n" + data +
                "\r\n0\r\nContent-Digest: sha-256=:AA==:\r\nX-Sum: 4\r\n\r\n";
  with_server({{step}}, options(), [&](Client& client) -> Task<> {
    auto response = co_await client.get("http://127.0.0.1:81/");
    EXPECT_TRUE(response.has_value());
    if (!response) co_return;
    const auto body = co_await response->body();
    EXPECT_TRUE(body && *body == words(100));
    EXPECT_EQ(response->trailers().get("content-digest"), std::nullopt);
    EXPECT_EQ(response->trailers().get("x-sum"), "4");
  });
}

TEST_F(ClientDecompression, IsOffByDefault) {
  const std::string data = compressed(Coding::gzip, words(3000));
  with_server({{answer("gzip", data)}},
              [&](Client& client) -> Task<> { EXPECT_EQ(co_await ask(client), data); });
  EXPECT_EQ(server_of_scripts_.requests[0].find("Accept-Encoding"), std::string::npos);
}

TEST_F(ClientDecompression, LeavesARequestWithItsOwnHeaderAlone) {
  const std::string data = compressed(Coding::gzip, words(3000));
  with_server({{answer("gzip", data), answer("gzip", data)}}, options(),
              [&](Client& client) -> Task<> {
                for (const auto* name : {"Accept-Encoding", "Range"}) {
                  ClientRequest request(Method::get, "http://127.0.0.1:81/");
                  request.set_header(name, "gzip");
                  EXPECT_EQ(co_await outcome_of(client, std::move(request)), data);
                }
              });
}

// RFC 9110 §7.7 binds proxies. A client that is none is the recipient.
TEST_F(ClientDecompression, ObeysNoTransformForAProxyOnly) {
  const std::string data = compressed(Coding::gzip, words(3000));
  Step step = answer("gzip", data);
  step.answer.insert(step.answer.find("Content-Type"), "Cache-Control: no-transform\r\n");
  with_server({{step, step}}, options(), [&](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), words(3000));
    ClientRequest request(Method::get, "http://127.0.0.1:81/");
    request.obey_no_transform();
    EXPECT_EQ(co_await outcome_of(client, std::move(request)), data);
  });
}

TEST_F(ClientDecompression, LeavesOtherCodingsAlone) {
  with_server({{answer("compress", "abc"), answer("gzip, br", "abc"), answer("identity", "abc")}},
              options(), [&](Client& client) -> Task<> {
                for (int round = 0; round < 3; ++round) EXPECT_EQ(co_await ask(client), "abc");
              });
}

TEST_F(ClientDecompression, MakesTheTagsOfDecodedResponsesWeak) {
  const std::string coded =
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nETag: \"v\"\r\nContent-Length: 0\r\n\r\n";
  const std::string unchanged =
      "HTTP/1.1 304 Not Modified\r\nETag: \"v\"\r\nContent-Encoding: gzip\r\n"
      "Accept-Ranges: bytes\r\nRepr-Digest: sha-256=:AA==:\r\n\r\n";
  struct Row {
    Method method;
    std::string answer;
    std::string_view condition;
    std::string_view tag;
  };
  const Row rows[] = {
      {Method::get, coded, "", "W/\"v\""},
      {Method::head, coded, "", "W/\"v\""},
      {Method::get, unchanged, "W/\"v\"", "W/\"v\""},
      {Method::get, unchanged, "\"v\"", "\"v\""},
      {Method::get, unchanged, "\"v\", W/\"v\"", "\"v\""},
      {Method::get, unchanged, "W/\"other\"", "\"v\""},
      {Method::get, "HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 0\r\n\r\n", "", "\"v\""},
  };
  for (const Row& row : rows) {
    with_server({{Step{.answer = row.answer}}}, options(), [&](Client& client) -> Task<> {
      ClientRequest request(row.method, "http://127.0.0.1:81/");
      if (!row.condition.empty()) request.set_header("If-None-Match", row.condition);
      auto response = co_await client.send(std::move(request));
      EXPECT_TRUE(response);
      if (!response) co_return;
      EXPECT_EQ(response->header("etag"), row.tag) << row.answer << row.condition;
      const bool is_of_coded_bytes = row.answer == unchanged && row.tag == "\"v\"";
      for (const auto* name : {"content-encoding", "accept-ranges", "repr-digest"}) {
        EXPECT_EQ(response->header(name).has_value(), is_of_coded_bytes) << name << row.condition;
      }
      const auto body = co_await response->body();
      EXPECT_TRUE(body && body->empty());
    });
  }
}

TEST_F(ClientDecompression, BodyLengthIsThatOfTheBytesThatAreRead) {
  const std::string data = compressed(Coding::gzip, words(3000));
  const auto length_of = [this](Step step, ClientOptions with, Method method = Method::get) {
    BodyLength length;
    with_server({{std::move(step)}}, std::move(with), [&](Client& client) -> Task<> {
      auto response = co_await client.send(ClientRequest(method, "http://127.0.0.1:81/"));
      EXPECT_TRUE(response);
      if (response) length = response->body_length();
      if (response) std::ignore = co_await response->body();
    });
    return length;
  };
  Step head;
  head.answer = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n";
  Step chunked;
  chunked.answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  EXPECT_EQ(length_of(answer("gzip", data), ClientOptions()), BodyLength::of(data.size()));
  EXPECT_EQ(length_of(answer("gzip", data), options()), BodyLength::unknown());
  EXPECT_EQ(length_of(head, ClientOptions(), Method::head), BodyLength());
  EXPECT_EQ(length_of(chunked, ClientOptions()), BodyLength::unknown());
}

TEST_F(ClientDecompression, RejectsBrokenBodies) {
  const std::string bad = make_error_code(ClientError::bad_response).message();
  const std::string large = make_error_code(ClientError::body_too_large).message();
  for (const Coding coding : available_codings()) {
    const std::string data = compressed(coding, words(3000));
    const std::pair<std::string, std::string> cases[] = {
        {data.substr(0, data.size() - 1), bad},
        {data + "x", bad},
        {compressed(coding, std::string(5'000'000, 'a')), large},
        {"", ""}};
    for (const auto& [body, outcome] : cases) {
      with_server({{answer(name_of(coding), body)}}, options(), [&](Client& client) -> Task<> {
        EXPECT_EQ(co_await ask(client), outcome) << name_of(coding);
      });
    }
  }
}

TEST_F(ClientDecompression, DropsAResponseThatIsNotRead) {
  with_server({{answer("gzip", compressed(Coding::gzip, words(900'000)))}}, options(),
              [&](Client& client) -> Task<> {
                auto response = co_await client.get("http://127.0.0.1:81/");
                EXPECT_TRUE(response.has_value());
                if (!response) co_return;
                const auto piece = co_await response->read();
                EXPECT_TRUE(piece && !piece->empty());
              });
}

}  // namespace
}  // namespace weir::http::client_decompression_test
