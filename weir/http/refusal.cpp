#include "weir/http/syntax/parse_error.hpp"

#include <array>
#include <string>

namespace weir::http {
namespace {

struct Row {
  Refusal refusal;
  Status status;
  std::string_view name;
};

constexpr std::array<Row, refusal_count> rows{{
    {Refusal::none, Status::ok, "none"},
    {Refusal::bad_line_end, Status::bad_request, "bad_line_end"},
    {Refusal::too_many_empty_lines, Status::bad_request, "too_many_empty_lines"},
    {Refusal::bad_method, Status::bad_request, "bad_method"},
    {Refusal::bad_target, Status::bad_request, "bad_target"},
    {Refusal::bad_target_form, Status::bad_request, "bad_target_form"},
    {Refusal::bad_target_authority, Status::bad_request, "bad_target_authority"},
    {Refusal::bad_escape, Status::bad_request, "bad_escape"},
    {Refusal::nul_escape, Status::bad_request, "nul_escape"},
    {Refusal::dot_segment, Status::bad_request, "dot_segment"},
    {Refusal::bad_version, Status::bad_request, "bad_version"},
    {Refusal::unsupported_version, Status::version_not_supported, "unsupported_version"},
    {Refusal::http2_preface, Status::version_not_supported, "http2_preface"},
    {Refusal::request_line_too_long, Status::uri_too_long, "request_line_too_long"},
    {Refusal::bad_field_name, Status::bad_request, "bad_field_name"},
    {Refusal::space_before_colon, Status::bad_request, "space_before_colon"},
    {Refusal::folded_line, Status::bad_request, "folded_line"},
    {Refusal::bad_field_value, Status::bad_request, "bad_field_value"},
    {Refusal::too_many_fields, Status::fields_too_large, "too_many_fields"},
    {Refusal::fields_too_long, Status::fields_too_large, "fields_too_long"},
    {Refusal::missing_host, Status::bad_request, "missing_host"},
    {Refusal::repeated_host, Status::bad_request, "repeated_host"},
    {Refusal::bad_host, Status::bad_request, "bad_host"},
    {Refusal::bad_content_length, Status::bad_request, "bad_content_length"},
    {Refusal::repeated_content_length, Status::bad_request, "repeated_content_length"},
    {Refusal::bad_transfer_encoding, Status::bad_request, "bad_transfer_encoding"},
    {Refusal::unknown_transfer_coding, Status::not_implemented, "unknown_transfer_coding"},
    {Refusal::repeated_transfer_encoding, Status::bad_request, "repeated_transfer_encoding"},
    {Refusal::unexpected_transfer_encoding, Status::bad_request, "unexpected_transfer_encoding"},
    {Refusal::both_lengths, Status::bad_request, "both_lengths"},
    {Refusal::bad_connection, Status::bad_request, "bad_connection"},
    {Refusal::unknown_expectation, Status::expectation_failed, "unknown_expectation"},
    {Refusal::bad_chunk_size, Status::bad_request, "bad_chunk_size"},
    {Refusal::chunk_size_too_large, Status::bad_request, "chunk_size_too_large"},
    {Refusal::bad_chunk_extension, Status::bad_request, "bad_chunk_extension"},
    {Refusal::chunk_line_too_long, Status::bad_request, "chunk_line_too_long"},
    {Refusal::chunk_extensions_too_long, Status::bad_request, "chunk_extensions_too_long"},
    {Refusal::bad_chunk_end, Status::bad_request, "bad_chunk_end"},
    {Refusal::forbidden_trailer, Status::bad_request, "forbidden_trailer"},
    {Refusal::too_many_trailers, Status::fields_too_large, "too_many_trailers"},
    {Refusal::trailers_too_long, Status::fields_too_large, "trailers_too_long"},
    {Refusal::head_timed_out, Status::request_timeout, "head_timed_out"},
    {Refusal::body_timed_out, Status::request_timeout, "body_timed_out"},
    {Refusal::body_too_large, Status::content_too_large, "body_too_large"},
}};

consteval bool rows_stand_at_their_index() {
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (rows[index].refusal != static_cast<Refusal>(index) || rows[index].name.empty()) {
      return false;
    }
  }
  return true;
}
static_assert(rows_stand_at_their_index());

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir.http"; }

  std::string message(int value) const override {
    if (value < 0 || static_cast<std::size_t>(value) >= rows.size()) return "unknown refusal";
    return std::string(rows[static_cast<std::size_t>(value)].name);
  }
};

}  // namespace

Status status_of(Refusal refusal) noexcept {
  return rows[static_cast<std::size_t>(refusal)].status;
}

std::string_view name_of(Refusal refusal) noexcept {
  return rows[static_cast<std::size_t>(refusal)].name;
}

const std::error_category& refusal_category() noexcept {
  static const Category category;
  return category;
}

}  // namespace weir::http
