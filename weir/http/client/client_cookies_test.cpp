// Tests of a client with a jar of cookies.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/client/cookie_jar.hpp"
#include "weir/http/test/client_fixture.hpp"

namespace weir::http::client_cookies_test {
namespace {

std::string answer_with(std::string_view headers, std::string_view status = "200 OK") {
  return "HTTP/1.1 " + std::string(status) + "\r\n" + std::string(headers) +
         "Content-Length: 5\r\n\r\nhello";
}

class ClientCookies : public ClientFixture {
 protected:
  /// Runs `body` with a client that has a jar.
  void with_jar(std::vector<std::vector<Step>> scripts, Body body) {
    ClientOptions options;
    options.cookie_jar = &jar_;
    with_server(std::move(scripts), std::move(options), std::move(body));
  }
  std::string cookies_of(std::size_t request) const {
    const std::string& text = server_of_scripts_.requests.at(request);
    const std::size_t start = text.find("Cookie: ");
    return start == text.npos ? "" : text.substr(start + 8, text.find("\r\n", start) - start - 8);
  }

  CookieJar jar_;
};

TEST_F(ClientCookies, ReturnToTheServer) {
  const std::string answer = answer_with("Set-Cookie: id=7; HttpOnly\r\nset-cookie: x=\"y\"\r\n");
  with_jar({{{.answer = answer}}}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client, "http://127.0.0.1:81/dir/page"), "hello");
    EXPECT_EQ(co_await ask(client, "http://127.0.0.1:81/dir/other"), "hello");
    EXPECT_EQ(co_await ask(client, "http://127.0.0.1:81/"), "hello");
    EXPECT_EQ(cookies_of(0), "");
    EXPECT_EQ(cookies_of(1), "id=7; x=\"y\"");
    EXPECT_EQ(cookies_of(2), "") << "their path is /dir";
  });
}

TEST_F(ClientCookies, OfARedirectAreSentWithTheNextRequest) {
  const std::string answer =
      answer_with("Set-Cookie: id=7\r\nLocation: http://127.0.0.1:82/\r\n", "302 Found");
  with_jar({{{.answer = answer}}}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(server_of_scripts_.requests.size(), 2U);
    EXPECT_EQ(cookies_of(1), "id=7") << "a port is no other host for cookies";
  });
}

TEST_F(ClientCookies, OfTheRequestReplaceThoseOfTheJar) {
  with_jar({{{.answer = answer_with("Set-Cookie: id=7\r\n")}}}, [this](Client& client) -> Task<> {
    EXPECT_EQ(co_await ask(client), "hello");
    ClientRequest request(Method::get, "http://127.0.0.1:81/");
    request.set_header("cookie", "mine=1");
    EXPECT_EQ(co_await outcome_of(client, std::move(request)), "hello");
    EXPECT_NE(server_of_scripts_.requests.at(1).find("cookie: mine=1\r\n"), std::string::npos);
    EXPECT_EQ(cookies_of(1), "");
  });
}

TEST_F(ClientCookies, AreIgnoredWithoutAJar) {
  with_server({{{.answer = answer_with("Set-Cookie: id=7\r\n")}}},
              [this](Client& client) -> Task<> {
                EXPECT_EQ(co_await ask(client), "hello");
                EXPECT_EQ(co_await ask(client), "hello");
                EXPECT_EQ(cookies_of(1), "");
              });
}

TEST_F(ClientCookies, OfAHostileServerStayBounded) {
  std::vector<Step> script;
  for (int response = 0; response < 20; ++response) {
    std::string headers;
    for (int each = 0; each < 90; ++each) {
      const std::string name = std::to_string(response) + "-" + std::to_string(each);
      headers += "Set-Cookie: " + name + "=" + std::string(600, 'v') + "; Path=/\r\n";
    }
    headers += "Set-Cookie: other=1; Domain=b.test\r\nSet-Cookie: =;=;\r\n";
    script.push_back({.answer = answer_with(headers)});
  }
  with_jar({script}, [this](Client& client) -> Task<> {
    for (int response = 0; response < 21; ++response) EXPECT_EQ(co_await ask(client), "hello");
    EXPECT_EQ(jar_.size(), CookieLimits().cookies_per_domain_max);
    EXPECT_EQ(server_of_scripts_.accepted, 1U);
    for (std::size_t request = 0; request < server_of_scripts_.requests.size(); ++request) {
      EXPECT_LE(cookies_of(request).size(), CookieLimits().header_bytes_max);
    }
    EXPECT_EQ(jar_.header_for(*Url::parse("http://b.test/"), platform_.wall_time()), "");
  });
}

}  // namespace
}  // namespace weir::http::client_cookies_test
