// Reason phrases and the mapping from errors to statuses.
#include "weir/http/syntax/status.hpp"

#include "weir/base/detail/shortage.hpp"
#include "weir/base/result.hpp"
#include "weir/compression/error.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/http/syntax/status_category.hpp"
#include "weir/tls/certificate/error.hpp"

namespace weir::http {
namespace {

std::string_view reason_below_400(Status status) noexcept {
  switch (status) {
    case Status::continue_:
      return "Continue";
    case Status::switching_protocols:
      return "Switching Protocols";
    case Status::early_hints:
      return "Early Hints";
    case Status::ok:
      return "OK";
    case Status::created:
      return "Created";
    case Status::accepted:
      return "Accepted";
    case Status::non_authoritative:
      return "Non-Authoritative Information";
    case Status::no_content:
      return "No Content";
    case Status::reset_content:
      return "Reset Content";
    case Status::partial_content:
      return "Partial Content";
    case Status::multiple_choices:
      return "Multiple Choices";
    case Status::moved_permanently:
      return "Moved Permanently";
    case Status::found:
      return "Found";
    case Status::see_other:
      return "See Other";
    case Status::not_modified:
      return "Not Modified";
    case Status::temporary_redirect:
      return "Temporary Redirect";
    case Status::permanent_redirect:
      return "Permanent Redirect";
    default:
      return {};
  }
}

std::string_view reason_of_client_error(Status status) noexcept {
  switch (status) {
    case Status::bad_request:
      return "Bad Request";
    case Status::unauthorized:
      return "Unauthorized";
    case Status::payment_required:
      return "Payment Required";
    case Status::forbidden:
      return "Forbidden";
    case Status::not_found:
      return "Not Found";
    case Status::method_not_allowed:
      return "Method Not Allowed";
    case Status::not_acceptable:
      return "Not Acceptable";
    case Status::proxy_authentication_required:
      return "Proxy Authentication Required";
    case Status::request_timeout:
      return "Request Timeout";
    case Status::conflict:
      return "Conflict";
    case Status::gone:
      return "Gone";
    case Status::length_required:
      return "Length Required";
    case Status::precondition_failed:
      return "Precondition Failed";
    case Status::content_too_large:
      return "Content Too Large";
    case Status::uri_too_long:
      return "URI Too Long";
    case Status::unsupported_media_type:
      return "Unsupported Media Type";
    case Status::range_not_satisfiable:
      return "Range Not Satisfiable";
    case Status::expectation_failed:
      return "Expectation Failed";
    case Status::misdirected_request:
      return "Misdirected Request";
    case Status::unprocessable_content:
      return "Unprocessable Content";
    default:
      return {};
  }
}

std::string_view reason_of_later_error(Status status) noexcept {
  switch (status) {
    case Status::locked:
      return "Locked";
    case Status::too_early:
      return "Too Early";
    case Status::upgrade_required:
      return "Upgrade Required";
    case Status::precondition_required:
      return "Precondition Required";
    case Status::too_many_requests:
      return "Too Many Requests";
    case Status::request_header_fields_too_large:
      return "Request Header Fields Too Large";
    case Status::unavailable_for_legal_reasons:
      return "Unavailable For Legal Reasons";
    case Status::internal_error:
      return "Internal Server Error";
    case Status::not_implemented:
      return "Not Implemented";
    case Status::bad_gateway:
      return "Bad Gateway";
    case Status::service_unavailable:
      return "Service Unavailable";
    case Status::gateway_timeout:
      return "Gateway Timeout";
    case Status::version_not_supported:
      return "HTTP Version Not Supported";
    case Status::insufficient_storage:
      return "Insufficient Storage";
    case Status::network_authentication_required:
      return "Network Authentication Required";
    default:
      return {};
  }
}

Status to_status_errc(Errc error) noexcept {
  switch (error) {
    case Errc::timed_out:
      return Status::gateway_timeout;
    case Errc::limit_reached:
      return Status::content_too_large;
    case Errc::bad_input:
    case Errc::end_of_stream:
      return Status::bad_request;
    case Errc::cancelled:
    case Errc::closed:
      return Status::service_unavailable;
    case Errc::unsupported:
      return Status::not_implemented;
    case Errc::not_found:
      return Status::not_found;
    case Errc::conflict:
      return Status::conflict;
    case Errc::bad_configuration:
      return Status::internal_error;
  }
  return Status::internal_error;
}

/// A broken connection is that of a request's own client. The other errors are of a server that a
/// handler has asked.
Status to_status_tls(tls::Error error) noexcept {
  switch (error) {
    case tls::Error::truncated:
    case tls::Error::bad_record:
    case tls::Error::record_flood:
    case tls::Error::peer_alert:
      return Status::bad_request;
    case tls::Error::timed_out:
      return Status::gateway_timeout;
    default:
      return Status::bad_gateway;
  }
}

}  // namespace

std::string_view reason_of(Status status) noexcept {
  if (status < Status::bad_request) return reason_below_400(status);
  if (status < Status::locked) return reason_of_client_error(status);
  return reason_of_later_error(status);
}

Status to_status(std::error_code error) noexcept {
  if (error.category() == error_category()) return to_status_errc(static_cast<Errc>(error.value()));
  if (error.category() == parse_error_category() && error.value() > 0 &&
      static_cast<std::size_t>(error.value()) < parse_error_count) {
    return to_status(static_cast<ParseError>(error.value()));
  }
  if (error.category() == client_error_category()) {
    return to_status(static_cast<ClientError>(error.value()));
  }
  if (error.category() == tls::tls_error_category()) {
    return to_status_tls(static_cast<tls::Error>(error.value()));
  }
  if (error.category() == compression::error_category()) {
    return compression::exceeds_limit(error) ? Status::content_too_large : Status::bad_request;
  }
  if (weir::detail::is_shortage(error)) return Status::service_unavailable;
  if (error == std::errc::connection_reset || error == std::errc::broken_pipe) {
    return Status::bad_request;
  }
  const StatusCategory* const category = StatusCategory::of(error);
  return category != nullptr ? category->status_of(error.value()) : Status::internal_error;
}

}  // namespace weir::http
