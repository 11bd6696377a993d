// Operations: each kind of a typed argument, and a handler that reads the same by hand, as
// strictly.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "bench/gate/operation.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/matching/arguments.hpp"
#include "weir/http/matching/detail/handler.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/task.hpp"

namespace weir::gate {
namespace {  // one file includes this header, and its handlers stay as short as in a program

struct Page {
  int page;
  std::optional<int> size;
  std::string search;
};

bool number_of(std::string_view text, int& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

/// Reads the pairs of a Page. Texts with escapes go to the decoder that a program would use.
bool read_page(std::string_view text, Page& page) {
  bool has_page = false;
  bool has_search = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    if (pair.find_first_of("%+") != pair.npos) return false;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    if (name == "page") {
      if (std::exchange(has_page, true) || !number_of(value, page.page)) return false;
    } else if (name == "size") {
      if (page.size || !number_of(value, page.size.emplace())) return false;
    } else if (name == "search") {
      if (std::exchange(has_search, true)) return false;
      page.search = value;
    }
  }
  return has_page && has_search;
}

http::Response answer_page(const Page& page) {
  expect(page.page == 7 && page.size == 50 && page.search == "weir", "the page");
  return http::Status::ok;
}
http::Response answer_number(int number) {
  expect(number == 42, "the number");
  return http::Status::ok;
}

/// Returns the value of the cookie `count`.
std::optional<std::string_view> count_cookie(const http::Request& request) {
  std::string_view rest = request.header("Cookie").value_or("");
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (pair.starts_with("count=")) return pair.substr(6);
  }
  return std::nullopt;
}

/// A handler, a request, and its body.
class CallFixture : http::BodySource {
 public:
  explicit CallFixture(http::Handler handler, std::string_view body = {})
      : handler_(std::move(handler)), body_(body) {
    http::HeadParser parser;
    expect(parser.parse(text_, head_).kind == http::ParseResult::Kind::complete, "parsing");
  }
  void call(unsigned times) {
    for (; times != 0; --times) {
      use(head_);
      const http::Response response = body_.empty()
                                          ? handler_.call(request_, params_)
                                          : handler_.call_with_body(request_, params_, body_);
      expect(response.status() == http::Status::ok, "the answer");
    }
  }
  /// Calls a handler that is a coroutine.
  void call_and_wait(unsigned times) { run(loop(), wait_for(times)); }

 private:
  Task<> wait_for(unsigned times) {
    for (; times != 0; --times) {
      use(head_);
      const http::Response response = co_await handler_.start(request_, params_);
      expect(response.status() == http::Status::ok, "the answer");
    }
  }
  Task<Result<Bytes>> read_piece() override { co_return Bytes(); }
  Task<Result<std::string_view>> collect() override { co_return body_; }
  const http::Headers& trailers() const noexcept override { return trailers_; }
  os::Address peer_address() const override { return {}; }

  http::Handler handler_;
  std::string_view body_;
  std::string text_ =
      "GET /notes?page=7&size=50&search=weir HTTP/1.1\r\nHost: bench\r\n"
      "Cookie: session=0123456789abcdef; count=42\r\nX-Count: 42\r\n\r\n";
  http::RequestHead head_;
  http::Headers trailers_;
  http::PathParams params_;
  http::Request request_{head_, *this};
};

constexpr std::string_view form_body = "page=7&size=50&search=weir";
constexpr std::string_view json_body = R"({"page":7,"size":50,"search":"weir"})";

[[gnu::noinline, maybe_unused]] void query_argument(unsigned times) {
  static CallFixture fixture(
      http::Handler::of([](const http::Query<Page>& page) { return answer_page(*page); }));
  fixture.call(times);
}
[[gnu::noinline, maybe_unused]] void query_by_hand(unsigned times) {
  static CallFixture fixture(http::Handler::of([](const http::Request& request) -> http::Response {
    Page page{};
    if (!read_page(request.query_text(), page)) return http::Status::bad_request;
    return answer_page(page);
  }));
  fixture.call(times);
}
[[gnu::noinline, maybe_unused]] void form_argument(unsigned times) {
  static CallFixture fixture(
      http::Handler::of([](const http::Form<Page>& page) { return answer_page(*page); }),
      form_body);
  fixture.call(times);
}
[[gnu::noinline, maybe_unused]] void form_by_hand(unsigned times) {
  static const auto read = [](http::Request& request) -> Task<http::Response> {
    const auto text = co_await request.body();
    Page page{};
    if (!text || !read_page(*text, page)) co_return http::Status::bad_request;
    co_return answer_page(page);
  };
  static CallFixture fixture(http::Handler::of(read), form_body);
  fixture.call_and_wait(times);
}
[[gnu::noinline, maybe_unused]] void header_argument(unsigned times) {
  static CallFixture fixture(
      http::Handler::of([](http::Header<"X-Count", int> count) { return answer_number(*count); }));
  fixture.call(times);
}
[[gnu::noinline, maybe_unused]] void header_by_hand(unsigned times) {
  static CallFixture fixture(http::Handler::of([](const http::Request& request) -> http::Response {
    const auto text = request.header("X-Count");
    int count = 0;
    if (!text || !number_of(*text, count)) return http::Status::bad_request;
    return answer_number(count);
  }));
  fixture.call(times);
}
[[gnu::noinline, maybe_unused]] void cookie_argument(unsigned times) {
  static CallFixture fixture(
      http::Handler::of([](http::Cookie<"count", int> count) { return answer_number(*count); }));
  fixture.call(times);
}
[[gnu::noinline, maybe_unused]] void cookie_by_hand(unsigned times) {
  static CallFixture fixture(http::Handler::of([](const http::Request& request) -> http::Response {
    const auto text = count_cookie(request);
    int count = 0;
    if (!text || !number_of(*text, count)) return http::Status::bad_request;
    return answer_number(count);
  }));
  fixture.call(times);
}
[[gnu::noinline, maybe_unused]] void json_argument(unsigned times) {
  static CallFixture fixture(
      http::Handler::of([](const http::Json<Page>& page) { return answer_page(*page); }),
      json_body);
  fixture.call(times);
}
[[gnu::noinline, maybe_unused]] void json_by_hand(unsigned times) {
  static const auto read = [](http::Request& request) -> Task<http::Response> {
    const auto text = co_await request.body();
    if (!text) co_return http::Status::bad_request;
    const auto page = json::read<Page>(*text);
    if (!page) co_return http::Status::bad_request;
    co_return answer_page(*page);
  };
  static CallFixture fixture(http::Handler::of(read), json_body);
  fixture.call_and_wait(times);
}

}  // namespace
}  // namespace weir::gate
