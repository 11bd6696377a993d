// The table of parse errors with their statuses and names, and their error category.
#include "weir/http/syntax/parse_error.hpp"

#include <array>
#include <string>

namespace weir::http {
namespace {

struct ParseErrorRow {
  ParseError error;
  Status status;
  std::string_view name;
};

constexpr std::array<ParseErrorRow, parse_error_count> parse_error_rows{{
    {ParseError::none, Status::ok, "none"},
    {ParseError::bad_line_end, Status::bad_request, "bad_line_end"},
    {ParseError::too_many_empty_lines, Status::bad_request, "too_many_empty_lines"},
    {ParseError::bad_method, Status::bad_request, "bad_method"},
    {ParseError::bad_target, Status::bad_request, "bad_target"},
    {ParseError::bad_target_form, Status::bad_request, "bad_target_form"},
    {ParseError::bad_target_authority, Status::bad_request, "bad_target_authority"},
    {ParseError::bad_escape, Status::bad_request, "bad_escape"},
    {ParseError::nul_escape, Status::bad_request, "nul_escape"},
    {ParseError::dot_segment, Status::bad_request, "dot_segment"},
    {ParseError::bad_version, Status::bad_request, "bad_version"},
    {ParseError::unsupported_version, Status::version_not_supported, "unsupported_version"},
    {ParseError::http2_preface, Status::version_not_supported, "http2_preface"},
    {ParseError::request_line_too_long, Status::uri_too_long, "request_line_too_long"},
    {ParseError::method_too_long, Status::not_implemented, "method_too_long"},
    {ParseError::unsupported_protocol, Status::not_implemented, "unsupported_protocol"},
    {ParseError::bad_header_name, Status::bad_request, "bad_header_name"},
    {ParseError::space_before_colon, Status::bad_request, "space_before_colon"},
    {ParseError::folded_line, Status::bad_request, "folded_line"},
    {ParseError::bad_header_value, Status::bad_request, "bad_header_value"},
    {ParseError::too_many_headers, Status::request_header_fields_too_large, "too_many_headers"},
    {ParseError::headers_too_long, Status::request_header_fields_too_large, "headers_too_long"},
    {ParseError::missing_host, Status::bad_request, "missing_host"},
    {ParseError::repeated_host, Status::bad_request, "repeated_host"},
    {ParseError::bad_host, Status::bad_request, "bad_host"},
    {ParseError::bad_content_length, Status::bad_request, "bad_content_length"},
    {ParseError::repeated_content_length, Status::bad_request, "repeated_content_length"},
    {ParseError::bad_transfer_encoding, Status::bad_request, "bad_transfer_encoding"},
    {ParseError::unknown_transfer_coding, Status::not_implemented, "unknown_transfer_coding"},
    {ParseError::repeated_transfer_encoding, Status::bad_request, "repeated_transfer_encoding"},
    {ParseError::unexpected_transfer_encoding, Status::bad_request, "unexpected_transfer_encoding"},
    {ParseError::both_lengths, Status::bad_request, "both_lengths"},
    {ParseError::bad_connection, Status::bad_request, "bad_connection"},
    {ParseError::unknown_expectation, Status::expectation_failed, "unknown_expectation"},
    {ParseError::malformed_fields, Status::bad_request, "malformed_fields"},
    {ParseError::bad_field_block, Status::bad_request, "bad_field_block"},
    {ParseError::bad_chunk_size, Status::bad_request, "bad_chunk_size"},
    {ParseError::chunk_size_too_large, Status::bad_request, "chunk_size_too_large"},
    {ParseError::bad_chunk_extension, Status::bad_request, "bad_chunk_extension"},
    {ParseError::chunk_line_too_long, Status::bad_request, "chunk_line_too_long"},
    {ParseError::chunk_extensions_too_long, Status::bad_request, "chunk_extensions_too_long"},
    {ParseError::bad_chunk_end, Status::bad_request, "bad_chunk_end"},
    {ParseError::forbidden_trailer, Status::bad_request, "forbidden_trailer"},
    {ParseError::too_many_trailers, Status::request_header_fields_too_large, "too_many_trailers"},
    {ParseError::trailers_too_long, Status::request_header_fields_too_large, "trailers_too_long"},
    {ParseError::bad_status, Status::bad_gateway, "bad_status"},
    {ParseError::status_line_too_long, Status::bad_gateway, "status_line_too_long"},
    {ParseError::too_many_interim, Status::bad_gateway, "too_many_interim"},
    {ParseError::unexpected_upgrade, Status::bad_gateway, "unexpected_upgrade"},
    {ParseError::unexpected_response, Status::bad_gateway, "unexpected_response"},
    {ParseError::head_timed_out, Status::request_timeout, "head_timed_out"},
    {ParseError::body_timed_out, Status::request_timeout, "body_timed_out"},
    {ParseError::body_too_large, Status::content_too_large, "body_too_large"},
}};

consteval bool rows_stand_at_their_index() {
  for (std::size_t index = 0; index < parse_error_rows.size(); ++index) {
    if (parse_error_rows[index].error != static_cast<ParseError>(index) ||
        parse_error_rows[index].name.empty()) {
      return false;
    }
  }
  return true;
}
static_assert(rows_stand_at_their_index());

class ParseErrorCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir.http"; }

  std::string message(int value) const override {
    if (value < 0 || static_cast<std::size_t>(value) >= parse_error_rows.size())
      return "unknown error";
    return std::string(parse_error_rows[static_cast<std::size_t>(value)].name);
  }
};

}  // namespace

Status to_status(ParseError error) noexcept {
  return parse_error_rows[static_cast<std::size_t>(error)].status;
}

std::string_view name_of(ParseError error) noexcept {
  return parse_error_rows[static_cast<std::size_t>(error)].name;
}

const std::error_category& parse_error_category() noexcept {
  static const ParseErrorCategory category;
  return category;
}

}  // namespace weir::http
