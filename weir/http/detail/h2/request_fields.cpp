#include "weir/http/detail/h2/request_fields.hpp"

#include <cassert>
#include <cstdint>

#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/method.hpp"

namespace weir::http {

RequestFieldReader::RequestFieldReader(const RequestFieldLimits& limits)
    : FieldReader(
          {limits.list_bytes_max, limits.chunks.trailers_max, limits.chunks.trailers_bytes_max},
          more_size(limits)),
      second_authority_size_(second_authority_size(limits)),
      extended_connect_(limits.extended_connect),
      parser_(limits.head, &host_line_cache_) {}

/// Copies a text, so that it stays valid until the end of the block.
std::string_view RequestFieldReader::keep(std::string_view text) noexcept {
  const char* const start = pieces_end_;
  pieces_end_ += text.copy(pieces_end_, text.size());
  return between(start, pieces_end_);
}

/// Takes a pseudo-header field (RFC 9113 §8.3): known, before all others, and at most once.
void RequestFieldReader::add_pseudo(const Field& field) noexcept {
  if (has_text_) return fail(Kind::malformed);
  const std::string_view value = keep(field.value);
  if (!is_valid_value(value)) return fail(Kind::malformed);
  const auto take = [&](std::string_view& piece) {
    if (!piece.empty() || value.empty()) return fail(Kind::malformed);
    piece = value;
  };
  if (field.name == ":method") return take(pseudo_.method);
  if (field.name == ":path") return take(pseudo_.path);
  if (field.name == ":scheme") return take(pseudo_.scheme);
  if (field.name == ":authority") {
    if (pseudo_.has_authority) return fail(Kind::malformed);
    pseudo_.has_authority = true;
    pseudo_.authority = value;
    return;
  }
  if (field.name != ":protocol" || !extended_connect_) return fail(Kind::malformed);
  pseudo_.has_protocol = true;
  take(pseudo_.protocol);
}

void RequestFieldReader::begin_line(std::string_view method, std::string_view target) noexcept {
  write(method);
  write(" ");
  write(target);
  write(" HTTP/1.1\r\n");
  if (pseudo_.has_authority) write_line("host", pseudo_.authority);
}

/// Checks :scheme and :path (RFC 9113 §8.3.1). The HeadParser checks the rest of the path.
void RequestFieldReader::check_target() noexcept {
  const std::string_view path = pseudo_.path;
  if (path.empty() || pseudo_.scheme.empty()) return fail(Kind::malformed);
  if (path.front() != '/' && path != "*") return fail(Kind::malformed);
  result_.is_https = equals_ignoring_case(pseudo_.scheme, "https");
  if (!result_.is_https && !equals_ignoring_case(pseudo_.scheme, "http")) {
    return fail(Kind::rejected, ParseError::bad_target_form);
  }
  // A space would end the target in HTTP/1.1.
  if (path.find(' ') != std::string_view::npos) fail(Kind::rejected, ParseError::bad_target);
}

/// Begins a CONNECT, which has an authority only (RFC 9113 §8.5).
void RequestFieldReader::begin_connect() noexcept {
  if (!pseudo_.scheme.empty() || !pseudo_.path.empty() || pseudo_.authority.empty()) {
    return fail(Kind::malformed);
  }
  if (pseudo_.authority.find(' ') != std::string_view::npos) {
    return fail(Kind::rejected, ParseError::bad_target);
  }
  if (pseudo_.authority.size() > second_authority_size_) {
    return fail(Kind::rejected, ParseError::request_line_too_long);
  }
  begin_line(pseudo_.method, pseudo_.authority);
}

/// Begins an extended CONNECT (RFC 8441 §4), which is to its handler what a GET with Upgrade is.
void RequestFieldReader::begin_extended_connect() noexcept {
  check_target();
  if (failed()) return;
  if (!pseudo_.has_authority || pseudo_.path.front() != '/') return fail(Kind::malformed);
  if (!is_token(pseudo_.protocol)) return fail(Kind::rejected, ParseError::bad_header_value);
  if (!equals_ignoring_case(pseudo_.protocol, "websocket")) {
    return fail(Kind::rejected, ParseError::unsupported_protocol);
  }
  result_.is_extended_connect = true;
  begin_line("GET", pseudo_.path);
  write_line("connection", "upgrade");
  write_line("upgrade", pseudo_.protocol);
}

/// Writes the request line and Host. Called after the last pseudo-header field.
void RequestFieldReader::begin_text() noexcept {
  has_text_ = true;
  if (pseudo_.method.empty()) return fail(Kind::malformed);
  if (pseudo_.method == "CONNECT") {
    return pseudo_.has_protocol ? begin_extended_connect() : begin_connect();
  }
  if (pseudo_.has_protocol) return fail(Kind::malformed);
  check_target();
  if (failed()) return;
  if (!is_token(pseudo_.method)) return fail(Kind::rejected, ParseError::bad_method);
  begin_line(pseudo_.method, pseudo_.path);
}

/// Takes a Host that says the same as :authority (RFC 9113 §8.3.1). The default port of the scheme
/// may be in one of them only. Returns false if it has to be written.
bool RequestFieldReader::take_host(std::string_view value) noexcept {
  if (!pseudo_.has_authority || has_host_) return false;
  has_host_ = true;
  constexpr std::uint16_t unknown_port = 0;  // of a CONNECT, which has no scheme
  const std::uint16_t port = result_.is_https ? 443 : 80;
  const std::uint16_t default_port = pseudo_.scheme.empty() ? unknown_port : port;
  if (!is_same_authority(value, pseudo_.authority, default_port)) fail(Kind::malformed);
  return true;
}

/// Adds a crumb. No other text is kept between crumbs, because pseudo-header fields come first.
void RequestFieldReader::add_cookie(std::string_view value) noexcept {
  const char* const start = has_cookie_ ? cookie_.data() : pieces_end_;
  if (has_cookie_) keep("; ");
  if (!is_valid_value(keep(value))) return fail(Kind::malformed);
  cookie_ = between(start, pieces_end_);
  has_cookie_ = true;
}

void RequestFieldReader::add_header(const Field& field) noexcept {
  if (!has_text_) begin_text();
  if (failed()) return;
  if (field.name == "cookie") return add_cookie(field.value);
  if (field.name == "host" && take_host(field.value)) return;
  write_field(field);
}

/// Decodes a block, and writes the text of its head. Returns false if it is not complete.
bool RequestFieldReader::decode(HpackTable& table, Bytes block) {
  HpackDecoder decoder = begin(table, block);
  pseudo_ = {};
  pieces_end_ = more() + second_authority_size_;
  has_text_ = has_host_ = has_cookie_ = false;
  HpackDecoder::Step step;
  while ((step = decoder.next()) == HpackDecoder::Step::field) {
    const Field& field = decoder.field();
    if (failed()) continue;  // the rest of the block still changes the table
    if (field.name.starts_with(':')) {
      add_pseudo(field);
    } else {
      add_header(field);
    }
  }
  if (!finish(step, decoder, ParseError::headers_too_long)) return false;
  if (!failed() && !has_text_) begin_text();
  if (failed()) return false;
  if (has_cookie_) write_line("cookie", cookie_);
  write(line_end);
  note_block(table, block, decoder);
  return true;
}

FieldsResult RequestFieldReader::read_request(HpackTable& table, Bytes block, RequestHead& head) {
  if (is_repeated(table, block)) {
    head = repeated_head_;
    return result_;
  }
  if (!decode(table, block)) {
    head.clear(method_of(pseudo_.method));
    return result_;
  }
  const ParseResult parsed = parser_.parse(text(), head);
  if (parsed.kind == ParseResult::Kind::complete) {
    if (const auto priority = head.header("priority")) result_.priority = parse_priority(*priority);
    if (has_noted_block()) repeated_head_ = head;
    return result_;
  }
  assert(parsed.kind == ParseResult::Kind::error);
  parser_.reset();
  forget(table);
  fail(Kind::rejected, parsed.error);
  head.clear(head.method());
  return result_;
}

}  // namespace weir::http
