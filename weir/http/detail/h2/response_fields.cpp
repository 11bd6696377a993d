#include "weir/http/detail/h2/response_fields.hpp"

#include <cassert>
#include <string_view>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {

ResponseFieldReader::ResponseFieldReader(const ResponseFieldLimits& limits)
    : FieldReader(
          {limits.list_bytes_max, limits.chunks.trailers_max, limits.chunks.trailers_bytes_max}, 0),
      parser_(limits.head) {}

/// Writes the status line. The first field is :status (RFC 9113 §8.3.2), three digits that the
/// HeadParser checks.
void ResponseFieldReader::begin_text(const Field& field) noexcept {
  const std::string_view status = field.value;
  constexpr std::size_t digits = 3;
  if (field.name != ":status" || status.size() != digits || !all_in(status, CharClass::digit) ||
      status == "101") {
    return fail(Kind::malformed);
  }
  write("HTTP/1.1 ");
  write(status);
  write(line_end);
}

FieldsResult ResponseFieldReader::read_response(HpackTable& table, Bytes block,
                                                ReceivedResponseHead& head) {
  HpackDecoder decoder = begin(table, block);
  HpackDecoder::Step step;
  while ((step = decoder.next()) == HpackDecoder::Step::field) {
    const Field& field = decoder.field();
    if (failed()) continue;  // the rest of the block still changes the table
    if (text().empty()) {
      begin_text(field);
    } else {
      write_field(field);
    }
  }
  if (!finish(step, decoder, ParseError::headers_too_long)) return result_;
  if (!failed() && text().empty()) fail(Kind::malformed);
  if (failed()) return result_;
  write(line_end);
  const ParseResult parsed = parser_.parse(text(), head);
  if (parsed.kind == ParseResult::Kind::complete) return result_;
  assert(parsed.kind == ParseResult::Kind::error);
  parser_.reset();
  fail(Kind::rejected, parsed.error);
  return result_;
}

}  // namespace weir::http
