// The parser of responses.
#include "weir/http/detail/h1/response_parser.hpp"

#include <algorithm>
#include <cassert>

namespace weir::http {

using Kind = ResponseEvent::Kind;

ResponseParser::ResponseParser(const ResponseLimits& limits) noexcept
    : head_parser_(limits.head), chunks_(limits.chunks), interim_max_(limits.interim_max) {}

void ResponseParser::begin(Method method) noexcept {
  assert(state_ == State::idle || state_ == State::ended);
  method_ = method;
  state_ = State::head;
  interim_count_ = 0;
  reusable_ = false;
}

ResponseEvent ResponseParser::fail_with(ParseError error) noexcept {
  state_ = State::failed;
  return {Kind::error, error, 0, {}};
}

ResponseEvent ResponseParser::next(std::string_view input) {
  switch (state_) {
    case State::head:
      return read_head(input);
    case State::sized: {
      if (left_ == 0) {
        state_ = State::ended;
        return {Kind::end, ParseError::none, 0, {}};
      }
      if (input.empty()) return {};
      const std::string_view data = input.substr(0, std::min<std::uint64_t>(left_, input.size()));
      left_ -= data.size();
      return {Kind::data, ParseError::none, data.size(), data};
    }
    case State::chunked:
      return read_chunks(input);
    case State::until_close:
      if (input.empty()) return {};
      return {Kind::data, ParseError::none, input.size(), input};
    case State::idle:
    case State::ended:
      if (input.empty()) return {};
      return fail_with(ParseError::unexpected_response);
    case State::failed:
      break;
  }
  assert(false && "next() after an error");
  return {};
}

ResponseEvent ResponseParser::read_head(std::string_view input) {
  const ParseResult result = head_parser_.parse(input, head_);
  if (result.kind == ParseResult::Kind::incomplete) return {};
  if (result.kind == ParseResult::Kind::error) return fail_with(result.error);
  if (head_.status() == Status::switching_protocols) {
    return fail_with(ParseError::unexpected_upgrade);
  }
  if (code_of(head_.status()) < 200) {
    if (++interim_count_ > interim_max_) return fail_with(ParseError::too_many_interim);
    return {Kind::interim, ParseError::none, result.consumed, {}};
  }
  start_body();
  return {Kind::head, ParseError::none, result.consumed, {}};
}

/// Finds the end of the body (RFC 9112 §6.3).
void ResponseParser::start_body() noexcept {
  const bool announced = head_.chunked() || head_.content_length() > 0;
  const bool tunnel = method_ == Method::connect && code_of(head_.status()) < 300;
  reusable_ = head_.keep_alive() && !tunnel;
  left_ = 0;
  body_length_ = {};
  state_ = State::sized;
  if (method_ == Method::head || tunnel) return;
  if (!may_have_body(head_.status())) {
    // A server that announces a body with a 204 may also send one.
    if (announced && head_.status() == Status::no_content) reusable_ = false;
  } else if (head_.chunked()) {
    chunks_.reset();
    body_length_ = BodyLength::unknown();
    state_ = State::chunked;
  } else if (head_.has_content_length()) {
    left_ = head_.content_length();
    body_length_ = BodyLength::of(left_);
  } else {
    reusable_ = false;
    body_length_ = BodyLength::unknown();
    state_ = State::until_close;
  }
}

ResponseEvent ResponseParser::read_chunks(std::string_view input) {
  const ChunkedDecoder::Step step = chunks_.next(input);
  switch (step.kind) {
    case ChunkedDecoder::Step::Kind::need_more:
      return {Kind::need_more, ParseError::none, step.consumed, {}};
    case ChunkedDecoder::Step::Kind::data:
      return {Kind::data, ParseError::none, step.consumed, step.data};
    case ChunkedDecoder::Step::Kind::end:
      state_ = State::ended;
      return {Kind::end, ParseError::none, step.consumed, {}};
    case ChunkedDecoder::Step::Kind::error:
      break;
  }
  return fail_with(step.error);
}

bool ResponseParser::finish_at_close() noexcept {
  const bool complete = state_ == State::until_close;
  state_ = complete ? State::ended : State::failed;
  return complete;
}

}  // namespace weir::http
