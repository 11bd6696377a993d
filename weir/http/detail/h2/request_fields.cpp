#include "weir/http/detail/h2/request_fields.hpp"

#include <array>
#include <cassert>
#include <cstring>

#include "weir/http/detail/h1/framing.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/detail/simd_block.hpp"

namespace weir::http {
namespace {

/// The bytes of names (RFC 9113 §8.2.1): tokens without letters in upper case.
consteval std::array<bool, 256> make_name_bytes() {
  std::array<bool, 256> bytes{};
  for (std::size_t each = 0; each < bytes.size(); ++each) {
    const auto character = static_cast<char>(each);
    bytes[each] = is_in(character, CharClass::token) && to_lower(character) == character;
  }
  return bytes;
}

constexpr std::array<bool, 256> name_bytes = make_name_bytes();

bool is_field_name(std::string_view name) noexcept {
  bool valid = !name.empty();
  for (const char each : name) valid &= name_bytes[static_cast<unsigned char>(each)];
  return valid;
}

/// Returns true if a value has no NUL, CR or LF, and no white space at its ends (RFC 9113 §8.2.1).
/// The HeadParser rejects other control characters.
bool is_field_value(std::string_view value) noexcept {
  if (value.empty()) return true;
  if (is_space(value.front()) || is_space(value.back())) return false;
  const char* const end = value.data() + value.size();
  for (const char* position = value.data();; ++position) {
    position = find_stop(value.data(), position, end,
                         [](const SimdBlock& block) { return block.controls(); });
    if (position == end) return true;
    if (*position == '\0' || *position == '\r' || *position == '\n') return false;
  }
}

/// Returns true for the fields that HTTP/2 does not allow, because they describe a connection of
/// HTTP/1.1 (RFC 9113 §8.2.2).
bool is_connection_field(std::string_view name, std::string_view value) noexcept {
  switch (name.size()) {
    case 2:
      return name == "te" && !equals_ignoring_case(value, "trailers");
    case 7:
      return name == "upgrade";
    case 10:
      return name == "connection" || name == "keep-alive";
    case 16:
      return name == "proxy-connection";
    case 17:
      return name == "transfer-encoding";
    default:
      return false;
  }
}

bool is_valid_field(const HpackDecoder::Field& field) noexcept {
  return (field.static_index != 0 || is_field_name(field.name)) && is_field_value(field.value) &&
         !is_connection_field(field.name, field.value);
}

/// Copies a text. Returns the end of the copy.
char* append(char* out, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace

RequestFieldReader::RequestFieldReader(const RequestFieldLimits& limits)
    : limits_(limits), parser_(limits.head, &host_line_cache_), memory_(new char[memory(limits)]) {
  limits_.list_bytes_max = static_cast<std::uint32_t>(list_max(limits));
}

HpackDecoder RequestFieldReader::decoder_of(HpackTable& table, Bytes block,
                                            std::uint32_t list_bytes_max) noexcept {
  const std::size_t list = limits_.list_bytes_max;
  char* const scratch = memory_.get() + pieces_size(list) + text_size(list);
  return {table, block, list_bytes_max, {scratch, HpackDecoder::scratch_size(list)}};
}

void RequestFieldReader::fail(Kind kind, ParseError error) noexcept {
  result_.kind = kind;
  result_.error = error;
}

/// Copies a text, so that it stays valid until the end of the block.
std::string_view RequestFieldReader::keep(std::string_view text) noexcept {
  const char* const start = pieces_end_;
  pieces_end_ = append(pieces_end_, text);
  return between(start, pieces_end_);
}

void RequestFieldReader::write(std::string_view text) noexcept {
  text_end_ = append(text_end_, text);
}

[[gnu::always_inline]] inline void RequestFieldReader::write_line(std::string_view name,
                                                                  std::string_view value) noexcept {
  char* out = append(text_end_, name);
  *out++ = ':';
  *out++ = ' ';
  out = append(out, value);
  *out++ = '\r';
  *out++ = '\n';
  text_end_ = out;
}

/// Takes a pseudo-header field (RFC 9113 §8.3): known, before all others, and at most once.
void RequestFieldReader::add_pseudo(const Field& field) noexcept {
  if (has_text_ || !is_field_value(field.value)) return fail(Kind::malformed);
  const auto take = [&](std::string_view& text) {
    if (!text.empty() || field.value.empty()) return fail(Kind::malformed);
    text = keep(field.value);
  };
  if (field.name == ":method") return take(pseudo_.method);
  if (field.name == ":path") return take(pseudo_.path);
  if (field.name == ":scheme") return take(pseudo_.scheme);
  if (field.name == ":authority") {
    if (pseudo_.has_authority) return fail(Kind::malformed);
    pseudo_.has_authority = true;
    pseudo_.authority = keep(field.value);
    return;
  }
  if (field.name != ":protocol" || !limits_.extended_connect) return fail(Kind::malformed);
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
  begin_line(pseudo_.method, pseudo_.authority);
}

/// Begins an extended CONNECT (RFC 8441 §4), which is to its handler what a GET with Upgrade is.
void RequestFieldReader::begin_extended_connect() noexcept {
  check_target();
  if (failed()) return;
  if (!pseudo_.has_authority || pseudo_.path.front() != '/') return fail(Kind::malformed);
  if (!is_token(pseudo_.protocol)) return fail(Kind::rejected, ParseError::bad_header_value);
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

/// Takes a Host that says the same as :authority. Returns false if it has to be written.
bool RequestFieldReader::take_host(std::string_view value) noexcept {
  if (!pseudo_.has_authority || has_host_) return false;
  has_host_ = true;
  if (!equals_ignoring_case(value, pseudo_.authority)) fail(Kind::malformed);
  return true;
}

/// Adds a crumb. No other text is kept between crumbs, because pseudo-header fields come first.
void RequestFieldReader::add_cookie(std::string_view value) noexcept {
  const char* const start = has_cookie_ ? cookie_.data() : pieces_end_;
  if (has_cookie_) keep("; ");
  keep(value);
  cookie_ = between(start, pieces_end_);
  has_cookie_ = true;
}

void RequestFieldReader::add_header(const Field& field) noexcept {
  if (!has_text_) begin_text();
  if (failed()) return;
  if (!is_valid_field(field)) return fail(Kind::malformed);
  if (field.name == "cookie") return add_cookie(field.value);
  if (field.name == "host" && take_host(field.value)) return;
  write_line(field.name, field.value);
}

void RequestFieldReader::begin() noexcept {
  result_ = {};
  pseudo_ = {};
  cookie_ = {};
  pieces_end_ = memory_.get();
  text_end_ = memory_.get() + pieces_size(limits_.list_bytes_max);
  has_text_ = has_host_ = has_cookie_ = false;
}

FieldsResult RequestFieldReader::read_request(HpackTable& table, Bytes block, RequestHead& head) {
  begin();
  const char* const text = text_end_;
  HpackDecoder decoder = decoder_of(table, block, limits_.list_bytes_max);
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
  if (step == HpackDecoder::Step::error) return {Kind::invalid_block};
  if (!failed() && decoder.exceeded()) fail(Kind::rejected, ParseError::headers_too_long);
  if (!failed() && !has_text_) begin_text();
  if (failed()) return result_;
  if (has_cookie_) write_line("cookie", cookie_);
  write(line_end);
  assert(static_cast<std::size_t>(text_end_ - text) <= text_size(limits_.list_bytes_max));
  const ParseResult parsed = parser_.parse(between(text, text_end_), head);
  if (parsed.kind == ParseResult::Kind::complete) return result_;
  assert(parsed.kind == ParseResult::Kind::error);
  parser_.reset();
  fail(Kind::rejected, parsed.error);
  return result_;
}

FieldsResult RequestFieldReader::read_trailers(HpackTable& table, Bytes block, Headers& trailers) {
  begin();
  HpackDecoder decoder = decoder_of(table, block, limits_.list_bytes_max);
  std::uint32_t count = 0;
  HpackDecoder::Step step;
  while ((step = decoder.next()) == HpackDecoder::Step::field) {
    const Field& field = decoder.field();
    if (failed()) continue;
    if (field.name.starts_with(':') || !is_valid_field(field)) {
      fail(Kind::malformed);
    } else if (is_forbidden_trailer(field.name)) {
      fail(Kind::rejected, ParseError::forbidden_trailer);
    } else if (++count > limits_.head.headers_max) {
      fail(Kind::rejected, ParseError::too_many_trailers);
    } else if (!trailers.add(field.name, field.value)) {
      fail(Kind::rejected, ParseError::bad_header_value);
    }
  }
  if (step == HpackDecoder::Step::error) return {Kind::invalid_block};
  if (!failed() && decoder.exceeded()) fail(Kind::rejected, ParseError::trailers_too_long);
  return result_;
}

FieldsResult RequestFieldReader::skip(HpackTable& table, Bytes block) {
  const bool valid = decoder_of(table, block, 0).next() == HpackDecoder::Step::end;
  return {valid ? Kind::complete : Kind::invalid_block};
}

}  // namespace weir::http
