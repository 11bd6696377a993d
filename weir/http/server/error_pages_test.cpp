// Tests of the one form of all errors: those of the router, the server, middleware and handlers.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/http/router/router.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/http_request.hpp"

namespace weir::http::error_pages_test {
namespace {

struct Note {
  std::string text;
};

class ErrorPagesTest : public HttpTest {
 protected:
  ErrorPagesTest() {
    routes_.get("/status", [] { return Status::conflict; });
    routes_.get("/result", []() -> Result<Note> { return fail(Errc::not_found); });
    routes_.get("/problem", [] {
      Response response = problem(Status::conflict, "the name is taken");
      response.set_header("X-Kept", "1");
      return response;
    });
    routes_.get("/own", [] { return text("own page", Status::not_found); });
    routes_.get("/empty", [] { return Response(Status{299}); });
    routes_.get("/throws", []() -> Response { throw std::runtime_error("a secret"); });
    routes_.post("/note", [](Note note) { return text(note.text); });
  }
  sim::HttpResponse ask(std::string_view line, std::string_view more = {}) {
    const std::string method(line.substr(0, line.find(' ')));
    const auto answers =
        sim::parse_http_responses(talk(connect(), std::string(line) + " HTTP/1.1\r\nHost: a\r\n" +
                                                      std::string(more) + "\r\n"),
                                  {method});
    EXPECT_EQ(answers.size(), 1U) << line;
    return answers.empty() ? sim::HttpResponse() : answers[0];
  }
};

TEST_F(ErrorPagesTest, AllErrorsAreProblemDocuments) {
  serve();
  struct Row {
    std::string_view line;
    std::string_view more;
    std::string_view body;
  };
  const Row rows[] = {
      {"GET /none", "", R"({"title":"Not Found","status":404})"},
      {"PUT /own", "", R"({"title":"Method Not Allowed","status":405})"},
      {"BREW /none", "", R"({"title":"Not Implemented","status":501})"},
      {"GET /own", "Bad Header: x\r\n", R"({"title":"Bad Request","status":400})"},
      {"GET /status", "", R"({"title":"Conflict","status":409})"},
      {"GET /result", "", R"({"title":"Not Found","status":404})"},
      {"GET /throws", "", R"({"title":"Internal Server Error","status":500})"},
      {"GET /problem", "", R"({"title":"Conflict","status":409,"detail":"the name is taken"})"},
      {"POST /note", "Content-Type: text/plain\r\nContent-Length: 0\r\n",
       R"({"title":"Unsupported Media Type","status":415})"},
  };
  for (const Row& row : rows) {
    const sim::HttpResponse answer = ask(row.line, row.more);
    EXPECT_EQ(answer.body, row.body) << row.line;
    EXPECT_EQ(answer.header("Content-Type"), "application/problem+json") << row.line;
  }
  EXPECT_EQ(ask("GET /problem").header("X-Kept"), "1");
  EXPECT_EQ(ask("PUT /own").header("Allow"), "GET, HEAD, OPTIONS");
}

TEST_F(ErrorPagesTest, AResponseWithContentIsNotReplaced) {
  serve();
  EXPECT_EQ(ask("GET /own").body, "own page");
  EXPECT_EQ(ask("GET /empty").body, "");
}

TEST_F(ErrorPagesTest, AHeadRequestGetsTheLengthOfTheDocument) {
  serve();
  EXPECT_EQ(ask("HEAD /none").header("Content-Length"),
            std::to_string(std::string_view(R"({"title":"Not Found","status":404})").size()));
}

TEST_F(ErrorPagesTest, TheProgramChoosesTheFormOnce) {
  routes_.render_errors([](const Problem& problem) {
    return html("<p>" + std::to_string(code_of(problem.status)) + " " + problem.detail + "</p>");
  });
  serve();
  EXPECT_EQ(ask("GET /none").body, "<p>404 </p>");
  EXPECT_EQ(ask("GET /none").status, 404) << "the page does not change the status";
  EXPECT_EQ(ask("GET /problem").body, "<p>409 the name is taken</p>");
  EXPECT_EQ(ask("GET /problem").header("Content-Type"), html_type);
  EXPECT_EQ(ask("GET /problem").header("X-Kept"), "1");
  EXPECT_EQ(ask("GET /throws").body, "<p>500 </p>");
  EXPECT_EQ(ask("GET /own", "Bad Header: x\r\n").body, "<p>400 </p>");
  EXPECT_EQ(ask("GET /own").body, "own page");
}

TEST_F(ErrorPagesTest, APageThatCannotBeMadeIsTheDocument) {
  routes_.render_errors([](const Problem& problem) -> Response {
    if (problem.status == Status::not_found) throw std::runtime_error("no page");
    return stream("text/plain", [](BodySink& sink) { return sink.write("streamed"); });
  });
  serve();
  EXPECT_EQ(ask("GET /none").body, R"({"title":"Not Found","status":404})");
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_EQ(platform_.logged()[0], "weir: GET /none: cannot describe an error: exception: no page");
  EXPECT_EQ(ask("GET /status").body, R"({"title":"Conflict","status":409})");
}

TEST_F(ErrorPagesTest, MiddlewareSeesTheErrorBeforeItIsDescribed) {
  routes_.use([](Request& request, Next next) -> Task<Response> {
    auto response = co_await next(request);
    if (response.status() == Status::not_found) response.set_content(text("no page here"));
    co_return response;
  });
  serve();
  EXPECT_EQ(ask("GET /none").body, "no page here");
  EXPECT_EQ(ask("GET /status").body, R"({"title":"Conflict","status":409})");
}

}  // namespace
}  // namespace weir::http::error_pages_test
