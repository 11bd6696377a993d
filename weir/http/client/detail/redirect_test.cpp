// Tests of the rules of redirects.
#include "weir/http/client/detail/client_head.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "weir/http/syntax/client_error.hpp"

namespace weir::http::redirect_test {
namespace {

constexpr std::string_view content_headers[] = {
    "Content-Encoding",   "Content-Language", "Content-Location", "Content-Digest",
    "Content-Range",      "Content-MD5",      "content-custom",   "Digest",
    "Repr-Digest",        "Last-Modified",    "Expect",           "Trailer",
    "Content-Disposition"};

ClientRequest request(Method method) {
  ClientRequest made(method, "http://a.test/dir/page?q");
  made.set_body("text/plain", Body(Literal("text")));
  made.set_header("Host", "name.test");
  made.set_header("Authorization", "secret");
  made.set_header("Cookie", "secret");
  made.set_header("Proxy-Authorization", "secret");
  made.set_header("X-Api-Key", "secret");
  for (const std::string_view name : content_headers) made.set_header(name, "x");
  made.set_header("Accept", "*/*");
  made.set_header("X-Content", "kept");
  return made;
}

Result<Redirect> follow(ClientRequest& made, int status, std::string_view location = "/next") {
  const std::vector<std::string> sensitive{"x-api-key"};
  return follow_redirect(made, static_cast<Status>(status), location, sensitive);
}

struct MethodRow {
  int status;
  Method before;
  Method after;
};

// RFC 9110 §15.4.2 to §15.4.9.
constexpr MethodRow methods[] = {
    {301, Method::get, Method::get},     {301, Method::head, Method::head},
    {301, Method::post, Method::get},    {301, Method::put, Method::put},
    {302, Method::post, Method::get},    {302, Method::delete_, Method::delete_},
    {303, Method::post, Method::get},    {303, Method::put, Method::get},
    {303, Method::head, Method::head},   {303, Method::get, Method::get},
    {307, Method::post, Method::post},   {307, Method::get, Method::get},
    {308, Method::post, Method::post},   {308, Method::patch, Method::patch},
    {301, Method::query, Method::query}, {302, Method::query, Method::query},
    {303, Method::query, Method::get},   {307, Method::query, Method::query},
};

TEST(Redirect, EachStatusHasItsMethod) {
  for (const MethodRow& row : methods) {
    ClientRequest made = request(row.before);
    EXPECT_EQ(follow(made, row.status), Redirect::follow);
    EXPECT_EQ(made.method(), row.after) << row.status;
    EXPECT_EQ(made.url().text(), "http://a.test/next");
    const bool dropped =
        row.before != row.after || (row.status == 303 && row.before == Method::get);
    EXPECT_EQ(made.body().text(), dropped ? "" : "text") << row.status;
    EXPECT_EQ(made.content_type(), dropped ? "" : "text/plain") << row.status;
    for (const std::string_view name : content_headers) {
      EXPECT_EQ(made.headers().contains(name), !dropped) << row.status << " " << name;
    }
    EXPECT_TRUE(made.headers().contains("accept"));
    EXPECT_TRUE(made.headers().contains("x-content"));
  }
}

TEST(Redirect, OtherStatusesAreNone) {
  for (const int status : {200, 201, 300, 304, 305, 306, 404, 500}) {
    ClientRequest made = request(Method::get);
    EXPECT_EQ(follow(made, status), Redirect::none) << status;
    EXPECT_EQ(made.url().text(), "http://a.test/dir/page?q");
  }
}

TEST(Redirect, AnotherOriginGetsNoCredentials) {
  for (const std::string_view location :
       {"http://b.test/", "//b.test/", "http://a.test:81/", "https://a.test/"}) {
    ClientRequest made = request(Method::get);
    EXPECT_EQ(follow(made, 307, location), Redirect::follow) << location;
    for (const std::string_view name :
         {"host", "authorization", "cookie", "proxy-authorization", "x-api-key"}) {
      EXPECT_FALSE(made.headers().contains(name)) << location << name;
    }
    EXPECT_TRUE(made.headers().contains("accept"));
  }
  for (const std::string_view location : {"/", "other", "?p", "http://A.test:80/x", "#part"}) {
    ClientRequest made = request(Method::get);
    EXPECT_EQ(follow(made, 307, location), Redirect::follow) << location;
    for (const std::string_view name :
         {"host", "authorization", "cookie", "proxy-authorization", "x-api-key"}) {
      EXPECT_TRUE(made.headers().contains(name)) << location << name;
    }
  }
}

TEST(Redirect, EncodesBytesThatNoUrlHas) {
  struct Row {
    std::string_view location;
    std::string_view url;
  };
  for (const Row& row : {Row{"/caf\xc3\xa9", "http://a.test/caf%C3%A9"},
                         {"/a b", "http://a.test/a%20b"},
                         {"/100%", "http://a.test/100%25"},
                         {"/100%2", "http://a.test/100%252"},
                         {"/%zz%41", "http://a.test/%25zz%41"},
                         {"/a?q=\xc3\xa9 \"<b>\"", "http://a.test/a?q=%C3%A9%20%22%3Cb%3E%22"},
                         {"/a?100%", "http://a.test/a?100%"},
                         {"?\\ ", "http://a.test/dir/page?\\%20"},
                         {"b c/../d e", "http://a.test/dir/d%20e"},
                         {"/\\evil.test/", "http://a.test/%5Cevil.test/"},
                         {"/a#\xc3\xa9 100%", "http://a.test/a"},
                         {"/a\tb\x01", "http://a.test/a%09b%01"},
                         {"//b.test/\xff", "http://b.test/%FF"},
                         {"HTTP://B.test:80?\xc3\xa9", "http://b.test/?%C3%A9"},
                         {"http://b.test/a b", "http://b.test/a%20b"}}) {
    ClientRequest made = request(Method::get);
    EXPECT_EQ(follow(made, 302, row.location), Redirect::follow) << row.location;
    EXPECT_EQ(made.url().text(), row.url);
  }
}

TEST(Redirect, RejectsLocationsThatItMustNotFollow) {
  for (const std::string_view location :
       {"ftp://a.test/", "http://user@a.test/", "http://", "http://a b/",
        "http://caf\xc3\xa9.test/", "http://a%20b/", "//a\\b/", "/a%00"}) {
    ClientRequest made = request(Method::get);
    const Result<Redirect> followed = follow(made, 302, location);
    EXPECT_TRUE(!followed && followed.error() == ClientError::bad_redirect) << location;
  }
  ClientRequest secure(Method::get, "https://a.test/");
  const Result<Redirect> followed = follow(secure, 302, "http://a.test/");
  EXPECT_TRUE(!followed && followed.error() == ClientError::bad_redirect);
}

TEST(Redirect, DoesNotSendAStreamAgain) {
  const auto write = [](BodySink& sink) { return sink.write("text"); };
  ClientRequest made = request(Method::post);
  made.set_body("text/plain", Body(StreamFunction(write)));
  EXPECT_EQ(follow(made, 307), Redirect::none);
  EXPECT_EQ(made.url().text(), "http://a.test/dir/page?q");
  EXPECT_EQ(follow(made, 303), Redirect::follow);
  EXPECT_FALSE(made.body().is_stream());
}

}  // namespace
}  // namespace weir::http::redirect_test
