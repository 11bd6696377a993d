// Status codes, their reason phrases and the status that answers an error.
#pragma once

#include <cstdint>
#include <string_view>
#include <system_error>

namespace weir::http {

/// A status code (RFC 9110 §15 and the common ones of the IANA registry). The enum can hold any
/// number from 100 to 599, including numbers without an enumerator: `Status{299}`.
enum class Status : std::uint16_t {
  continue_ = 100,
  switching_protocols = 101,
  early_hints = 103,
  ok = 200,
  created = 201,
  accepted = 202,
  non_authoritative = 203,
  no_content = 204,
  reset_content = 205,
  partial_content = 206,
  multiple_choices = 300,
  moved_permanently = 301,
  found = 302,
  see_other = 303,
  not_modified = 304,
  temporary_redirect = 307,
  permanent_redirect = 308,
  bad_request = 400,
  unauthorized = 401,
  payment_required = 402,
  forbidden = 403,
  not_found = 404,
  method_not_allowed = 405,
  not_acceptable = 406,
  proxy_authentication_required = 407,
  request_timeout = 408,
  conflict = 409,
  gone = 410,
  length_required = 411,
  precondition_failed = 412,
  content_too_large = 413,
  uri_too_long = 414,
  unsupported_media_type = 415,
  range_not_satisfiable = 416,
  expectation_failed = 417,
  misdirected_request = 421,
  unprocessable_content = 422,
  locked = 423,
  too_early = 425,
  upgrade_required = 426,
  precondition_required = 428,
  too_many_requests = 429,
  request_header_fields_too_large = 431,
  unavailable_for_legal_reasons = 451,
  internal_error = 500,
  not_implemented = 501,
  bad_gateway = 502,
  service_unavailable = 503,
  gateway_timeout = 504,
  version_not_supported = 505,
  insufficient_storage = 507,
  network_authentication_required = 511,
};

/// Returns the number on the wire.
constexpr int code_of(Status status) noexcept {
  return static_cast<int>(status);
}

/// Returns true if a server may send this status: 100 to 599.
constexpr bool is_valid(Status status) noexcept {
  return code_of(status) >= 100 && code_of(status) <= 599;
}

/// Returns false if a response with this status ends after its head regardless of its headers: 1xx,
/// 204 and 304 (RFC 9112 §6.3).
constexpr bool may_have_body(Status status) noexcept {
  return code_of(status) >= 200 && status != Status::no_content && status != Status::not_modified;
}

/// Returns the reason phrase, empty for a status without an enumerator.
/// Lifetime: the text lives as long as the process.
std::string_view reason_of(Status status) noexcept;

/// Returns the status that answers a request whose handling failed with `error`. A ParseError has
/// its own status, and so has a ClientError. Values of Errc have these statuses: timed_out 504,
/// limit_reached 413, bad_input and end_of_stream 400, not_found 404, conflict 409, unsupported
/// 501, cancelled and closed 503. A connection that the client reset or closed is 400. A lack of
/// descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM) is 503. A compression::DecompressError
/// is 413 for a limit and 400 otherwise. A StatusCategory chooses the statuses of its errors. All
/// other errors are 500.
///
/// The status of a timeout names the side that was late. It is 408 for a client that sent its
/// request too slowly (a ParseError), and 504 for another party that the handler waited for. It is
/// 503 for the server itself, which cancels a handler at the timeout of its route.
Status to_status(std::error_code error) noexcept;

}  // namespace weir::http
