// Tests of parse errors.
#include "weir/http/syntax/parse_error.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string_view>
#include <system_error>

namespace weir::http::parse_error_test {
namespace {

TEST(ParseError, NamesAreDistinctAndStatusesAreClientOrServerErrors) {
  std::set<std::string_view> names;
  for (std::size_t index = 1; index < parse_error_count; ++index) {
    const auto error = static_cast<ParseError>(index);
    EXPECT_TRUE(names.insert(name_of(error)).second) << name_of(error);
    EXPECT_GE(code_of(to_status(error)), 400) << name_of(error);
    EXPECT_LT(code_of(to_status(error)), 600) << name_of(error);
  }
}

TEST(ParseError, MapsErrorsToTheStatusesOfTheRfcs) {
  EXPECT_EQ(code_of(to_status(ParseError::request_line_too_long)), 414);
  EXPECT_EQ(code_of(to_status(ParseError::method_too_long)), 501);
  EXPECT_EQ(code_of(to_status(ParseError::headers_too_long)), 431);
  EXPECT_EQ(code_of(to_status(ParseError::too_many_headers)), 431);
  EXPECT_EQ(code_of(to_status(ParseError::unknown_transfer_coding)), 501);
  EXPECT_EQ(code_of(to_status(ParseError::unsupported_version)), 505);
  EXPECT_EQ(code_of(to_status(ParseError::unknown_expectation)), 417);
  EXPECT_EQ(code_of(to_status(ParseError::body_too_large)), 413);
  EXPECT_EQ(code_of(to_status(ParseError::head_timed_out)), 408);
  EXPECT_EQ(code_of(to_status(ParseError::bad_host)), 400);
}

TEST(ParseError, ConvertsToAnErrorCodeAndKeepsItsStatus) {
  const std::error_code error = ParseError::trailers_too_long;
  EXPECT_STREQ(error.category().name(), "weir.http");
  EXPECT_EQ(error.message(), "trailers_too_long");
  EXPECT_EQ(to_status(error), Status::request_header_fields_too_large);
  EXPECT_EQ(parse_error_category().message(-1), "unknown error");
  EXPECT_EQ(parse_error_category().message(10'000), "unknown error");
}

struct Row {
  ParseError error;
  int status;
  std::string_view name;
};

/// 400 unless RFC 9110 §15 has a status that says more.
constexpr Row rows[] = {
    {ParseError::none, 200, "none"},
    {ParseError::bad_line_end, 400, "bad_line_end"},
    {ParseError::too_many_empty_lines, 400, "too_many_empty_lines"},
    {ParseError::bad_method, 400, "bad_method"},
    {ParseError::bad_target, 400, "bad_target"},
    {ParseError::bad_target_form, 400, "bad_target_form"},
    {ParseError::bad_target_authority, 400, "bad_target_authority"},
    {ParseError::bad_escape, 400, "bad_escape"},
    {ParseError::nul_escape, 400, "nul_escape"},
    {ParseError::dot_segment, 400, "dot_segment"},
    {ParseError::bad_version, 400, "bad_version"},
    {ParseError::unsupported_version, 505, "unsupported_version"},
    {ParseError::http2_preface, 505, "http2_preface"},
    {ParseError::request_line_too_long, 414, "request_line_too_long"},
    {ParseError::method_too_long, 501, "method_too_long"},
    {ParseError::unsupported_protocol, 501, "unsupported_protocol"},
    {ParseError::bad_header_name, 400, "bad_header_name"},
    {ParseError::space_before_colon, 400, "space_before_colon"},
    {ParseError::folded_line, 400, "folded_line"},
    {ParseError::bad_header_value, 400, "bad_header_value"},
    {ParseError::too_many_headers, 431, "too_many_headers"},
    {ParseError::headers_too_long, 431, "headers_too_long"},
    {ParseError::missing_host, 400, "missing_host"},
    {ParseError::repeated_host, 400, "repeated_host"},
    {ParseError::bad_host, 400, "bad_host"},
    {ParseError::bad_content_length, 400, "bad_content_length"},
    {ParseError::repeated_content_length, 400, "repeated_content_length"},
    {ParseError::bad_transfer_encoding, 400, "bad_transfer_encoding"},
    {ParseError::unknown_transfer_coding, 501, "unknown_transfer_coding"},
    {ParseError::repeated_transfer_encoding, 400, "repeated_transfer_encoding"},
    {ParseError::unexpected_transfer_encoding, 400, "unexpected_transfer_encoding"},
    {ParseError::both_lengths, 400, "both_lengths"},
    {ParseError::bad_connection, 400, "bad_connection"},
    {ParseError::unknown_expectation, 417, "unknown_expectation"},
    {ParseError::malformed_fields, 400, "malformed_fields"},
    {ParseError::bad_field_block, 400, "bad_field_block"},
    {ParseError::bad_chunk_size, 400, "bad_chunk_size"},
    {ParseError::chunk_size_too_large, 400, "chunk_size_too_large"},
    {ParseError::bad_chunk_extension, 400, "bad_chunk_extension"},
    {ParseError::chunk_line_too_long, 400, "chunk_line_too_long"},
    {ParseError::chunk_extensions_too_long, 400, "chunk_extensions_too_long"},
    {ParseError::bad_chunk_end, 400, "bad_chunk_end"},
    {ParseError::forbidden_trailer, 400, "forbidden_trailer"},
    {ParseError::too_many_trailers, 431, "too_many_trailers"},
    {ParseError::trailers_too_long, 431, "trailers_too_long"},
    {ParseError::bad_status, 502, "bad_status"},
    {ParseError::status_line_too_long, 502, "status_line_too_long"},
    {ParseError::too_many_interim, 502, "too_many_interim"},
    {ParseError::unexpected_upgrade, 502, "unexpected_upgrade"},
    {ParseError::unexpected_response, 502, "unexpected_response"},
    {ParseError::head_timed_out, 408, "head_timed_out"},
    {ParseError::body_timed_out, 408, "body_timed_out"},
    {ParseError::body_too_large, 413, "body_too_large"},
};

TEST(ParseError, HasTheStatusAndTheNameOfItsCause) {
  EXPECT_EQ(std::size(rows), parse_error_count);
  for (const Row& each : rows) {
    EXPECT_EQ(code_of(to_status(each.error)), each.status) << each.name;
    EXPECT_EQ(name_of(each.error), each.name);
    const std::error_code code = each.error;
    EXPECT_EQ(code.message(), each.name);
    EXPECT_EQ(code.value(), static_cast<int>(each.error));
  }
}

TEST(ParseError, UnknownNumbersHaveNoName) {
  const std::error_category& category = parse_error_category();
  EXPECT_EQ(category.message(static_cast<int>(parse_error_count) - 1), "body_too_large");
  EXPECT_EQ(category.message(static_cast<int>(parse_error_count)), "unknown error");
  EXPECT_EQ(category.message(0), "none");
  EXPECT_EQ(category.message(-1), "unknown error");
}

}  // namespace
}  // namespace weir::http::parse_error_test
