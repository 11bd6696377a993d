// Tests of status codes.
#include "weir/http/syntax/status.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http::status_test {
namespace {

TEST(Status, HasReasonPhrases) {
  EXPECT_EQ(reason_of(Status::ok), "OK");
  EXPECT_EQ(reason_of(Status::not_found), "Not Found");
  EXPECT_EQ(reason_of(Status::unprocessable_content), "Unprocessable Content");
  EXPECT_EQ(reason_of(Status::locked), "Locked");
  EXPECT_EQ(reason_of(Status::version_not_supported), "HTTP Version Not Supported");
  EXPECT_EQ(reason_of(Status{299}), "");
  EXPECT_EQ(reason_of(Status{499}), "");
  EXPECT_EQ(reason_of(Status{0}), "");
}

TEST(Status, OnlySomeStatusesMayHaveABody) {
  for (int code : {100, 101, 103, 199, 204, 304}) {
    EXPECT_FALSE(may_have_body(static_cast<Status>(code))) << code;
  }
  for (int code : {200, 205, 206, 303, 400, 500}) {
    EXPECT_TRUE(may_have_body(static_cast<Status>(code))) << code;
  }
}

TEST(Status, AcceptsOnlyValidNumbers) {
  EXPECT_FALSE(is_valid(Status{99}));
  EXPECT_TRUE(is_valid(Status{100}));
  EXPECT_TRUE(is_valid(Status{599}));
  EXPECT_FALSE(is_valid(Status{600}));
}

TEST(Status, MapsErrorsToStatuses) {
  EXPECT_EQ(to_status(Errc::timed_out), Status::gateway_timeout);
  EXPECT_EQ(to_status(Errc::limit_reached), Status::content_too_large);
  EXPECT_EQ(to_status(Errc::bad_input), Status::bad_request);
  EXPECT_EQ(to_status(Errc::end_of_stream), Status::bad_request);
  EXPECT_EQ(to_status(Errc::closed), Status::service_unavailable);
  EXPECT_EQ(to_status(Errc::not_found), Status::not_found);
  EXPECT_EQ(to_status(make_error_code(ParseError::unknown_transfer_coding)),
            Status::not_implemented);
  EXPECT_EQ(to_status(make_error_code(ParseError::none)), Status::internal_error);
  EXPECT_EQ(to_status(system_error(EACCES)), Status::internal_error);
  EXPECT_EQ(to_status(system_error(ECONNRESET)), Status::bad_request);
}

struct Registered {
  Status status;
  int code;
  std::string_view reason;
};

/// The codes and phrases of RFC 9110 §15 and of the IANA registry.
constexpr Registered registered[] = {
    {Status::continue_, 100, "Continue"},
    {Status::switching_protocols, 101, "Switching Protocols"},
    {Status::early_hints, 103, "Early Hints"},
    {Status::ok, 200, "OK"},
    {Status::created, 201, "Created"},
    {Status::accepted, 202, "Accepted"},
    {Status::non_authoritative, 203, "Non-Authoritative Information"},
    {Status::no_content, 204, "No Content"},
    {Status::reset_content, 205, "Reset Content"},
    {Status::partial_content, 206, "Partial Content"},
    {Status::multiple_choices, 300, "Multiple Choices"},
    {Status::moved_permanently, 301, "Moved Permanently"},
    {Status::found, 302, "Found"},
    {Status::see_other, 303, "See Other"},
    {Status::not_modified, 304, "Not Modified"},
    {Status::temporary_redirect, 307, "Temporary Redirect"},
    {Status::permanent_redirect, 308, "Permanent Redirect"},
    {Status::bad_request, 400, "Bad Request"},
    {Status::unauthorized, 401, "Unauthorized"},
    {Status::payment_required, 402, "Payment Required"},
    {Status::forbidden, 403, "Forbidden"},
    {Status::not_found, 404, "Not Found"},
    {Status::method_not_allowed, 405, "Method Not Allowed"},
    {Status::not_acceptable, 406, "Not Acceptable"},
    {Status::proxy_authentication_required, 407, "Proxy Authentication Required"},
    {Status::request_timeout, 408, "Request Timeout"},
    {Status::conflict, 409, "Conflict"},
    {Status::gone, 410, "Gone"},
    {Status::length_required, 411, "Length Required"},
    {Status::precondition_failed, 412, "Precondition Failed"},
    {Status::content_too_large, 413, "Content Too Large"},
    {Status::uri_too_long, 414, "URI Too Long"},
    {Status::unsupported_media_type, 415, "Unsupported Media Type"},
    {Status::range_not_satisfiable, 416, "Range Not Satisfiable"},
    {Status::expectation_failed, 417, "Expectation Failed"},
    {Status::misdirected_request, 421, "Misdirected Request"},
    {Status::unprocessable_content, 422, "Unprocessable Content"},
    {Status::locked, 423, "Locked"},
    {Status::too_early, 425, "Too Early"},
    {Status::upgrade_required, 426, "Upgrade Required"},
    {Status::precondition_required, 428, "Precondition Required"},
    {Status::too_many_requests, 429, "Too Many Requests"},
    {Status::request_header_fields_too_large, 431, "Request Header Fields Too Large"},
    {Status::unavailable_for_legal_reasons, 451, "Unavailable For Legal Reasons"},
    {Status::internal_error, 500, "Internal Server Error"},
    {Status::not_implemented, 501, "Not Implemented"},
    {Status::bad_gateway, 502, "Bad Gateway"},
    {Status::service_unavailable, 503, "Service Unavailable"},
    {Status::gateway_timeout, 504, "Gateway Timeout"},
    {Status::version_not_supported, 505, "HTTP Version Not Supported"},
    {Status::insufficient_storage, 507, "Insufficient Storage"},
    {Status::network_authentication_required, 511, "Network Authentication Required"},
};

TEST(Status, HasTheCodesAndReasonPhrasesOfTheRegistry) {
  std::map<int, std::string_view> reasons;
  for (const Registered& each : registered) {
    EXPECT_EQ(code_of(each.status), each.code) << each.reason;
    reasons.emplace(each.code, each.reason);
  }
  for (int code = 0; code <= 1000; ++code) {
    EXPECT_EQ(reason_of(static_cast<Status>(code)), reasons[code]) << code;
  }
}

TEST(Status, MapsEveryErrorOfTheContract) {
  for (const auto& [error, code] :
       std::initializer_list<std::pair<Errc, int>>{{Errc::timed_out, 504},
                                                   {Errc::limit_reached, 413},
                                                   {Errc::bad_input, 400},
                                                   {Errc::end_of_stream, 400},
                                                   {Errc::not_found, 404},
                                                   {Errc::conflict, 409},
                                                   {Errc::unsupported, 501},
                                                   {Errc::cancelled, 503},
                                                   {Errc::closed, 503},
                                                   {Errc::bad_configuration, 500}}) {
    EXPECT_EQ(code_of(to_status(make_error_code(error))), code) << make_error_code(error).message();
  }
  for (const int number : {ECONNRESET, EPIPE}) {
    EXPECT_EQ(to_status(system_error(number)), Status::bad_request) << number;
  }
  for (const int number : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    EXPECT_EQ(to_status(system_error(number)), Status::service_unavailable) << number;
  }
  for (const int number : {EACCES, ETIMEDOUT, ECONNREFUSED, EIO}) {
    EXPECT_EQ(to_status(system_error(number)), Status::internal_error) << number;
  }
  EXPECT_EQ(to_status(std::error_code(1, std::generic_category())), Status::internal_error);
}

TEST(Status, MapsOnlyNumbersThatParseErrorsHave) {
  const auto status_of_number = [](int number) {
    return to_status(std::error_code(number, parse_error_category()));
  };
  for (std::size_t index = 1; index < parse_error_count; ++index) {
    EXPECT_EQ(status_of_number(static_cast<int>(index)), to_status(static_cast<ParseError>(index)));
  }
  EXPECT_EQ(status_of_number(1), Status::bad_request);
  EXPECT_EQ(status_of_number(static_cast<int>(parse_error_count) - 1), Status::content_too_large);
  for (const int number : {-1, 0, static_cast<int>(parse_error_count)}) {
    EXPECT_EQ(status_of_number(number), Status::internal_error) << number;
  }
}

}  // namespace
}  // namespace weir::http::status_test
