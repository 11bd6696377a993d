// A request made of text, for tests of what handles requests: its head is parsed as a server does.
#pragma once

#include <cassert>
#include <string>
#include <string_view>

#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/limits.hpp"
#include "weir/http/message/request.hpp"

namespace weir::http {

/// A request whose body, if it has one, has arrived.
class TextRequest : BodySource {
 public:
  /// For example TextRequest("GET /notes/7?full=1"). The line must be one that a server accepts,
  /// and so must the field lines, each with its end.
  explicit TextRequest(std::string_view method_and_target, std::string_view body = {},
                       std::string_view field_lines = {})
      : text_(std::string(method_and_target) + " HTTP/1.1\r\nHost: test\r\n" +
              std::string(field_lines) + "\r\n"),
        body_text_(body) {
    HeadParser parser{HeadLimits()};
    [[maybe_unused]] const ParseResult parsed = parser.parse(text_, head_);
    assert(parsed.kind == ParseResult::Kind::complete);
  }
  TextRequest(const TextRequest&) = delete;
  TextRequest& operator=(const TextRequest&) = delete;

  const RequestHead& head() const noexcept { return head_; }
  Request& request() noexcept { return request_; }

 private:
  Task<Result<Bytes>> read() override { co_return Bytes(); }
  Task<Result<std::string_view>> read_all() override { co_return std::string_view(body_text_); }
  const Fields& trailers() const noexcept override { return trailers_; }
  os::Address peer() const override { return {}; }

  std::string text_;
  std::string body_text_;
  RequestHead head_;
  Fields trailers_;
  Request request_{head_, *this};
};

}  // namespace weir::http
