// A request made from text, for tests of handlers; its head is parsed as in a server.
#pragma once

#include <cassert>
#include <string>
#include <string_view>

#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/server/limits.hpp"

namespace weir::http {

/// A request whose body, if it has one, has arrived.
class TextRequest : BodySource {
 public:
  /// Makes a request, for example TextRequest("GET /notes/7?full=1"). The line and the header
  /// lines must be valid for a server. Each header line ends with CRLF.
  explicit TextRequest(std::string_view method_and_target, std::string_view body = {},
                       std::string_view header_lines = {}, Loop* loop = nullptr)
      : text_(std::string(method_and_target) + " HTTP/1.1\r\nHost: test\r\n" +
              std::string(header_lines) + "\r\n"),
        body_text_(body),
        request_(head_, *this, nullptr, loop) {
    HeadParser parser{HeadLimits()};
    [[maybe_unused]] const ParseResult parsed = parser.parse(text_, head_);
    assert(parsed.kind == ParseResult::Kind::complete);
  }
  TextRequest(const TextRequest&) = delete;
  TextRequest& operator=(const TextRequest&) = delete;

  const RequestHead& head() const noexcept { return head_; }
  Request& request() noexcept { return request_; }

 private:
  Task<Result<Bytes>> read_piece() override { co_return Bytes(); }
  Task<Result<std::string_view>> collect() override { co_return std::string_view(body_text_); }
  BodyLength length() const noexcept override {
    if (head_.chunked()) return BodyLength::unknown();
    return BodyLength::of(head_.has_content_length() ? head_.content_length() : body_text_.size());
  }
  const Headers& trailers() const noexcept override { return trailers_; }
  os::Address peer_address() const override { return {}; }

  std::string text_;
  std::string body_text_;
  RequestHead head_;
  Headers trailers_;
  Request request_;
};

/// Returns the body that the server sends: a problem document if the response needs an error page.
inline std::string sent_body(const Response& response) {
  if (!response.needs_error_page()) return std::string(response.body().text());
  return std::string(problem_document(response.problem()).body().text());
}

}  // namespace weir::http
