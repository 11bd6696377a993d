// The table of client errors with their statuses and names, and their error category.
#include "weir/http/syntax/client_error.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace weir::http {
namespace {

struct ClientErrorRow {
  ClientError error;
  Status status;
  std::string_view name;
};

constexpr std::array client_error_rows{
    ClientErrorRow{ClientError::connect_failed, Status::bad_gateway, "connect_failed"},
    ClientErrorRow{ClientError::connect_timed_out, Status::gateway_timeout, "connect_timed_out"},
    ClientErrorRow{ClientError::queue_full, Status::service_unavailable, "queue_full"},
    ClientErrorRow{ClientError::queue_timed_out, Status::service_unavailable, "queue_timed_out"},
    ClientErrorRow{ClientError::head_timed_out, Status::gateway_timeout, "head_timed_out"},
    ClientErrorRow{ClientError::body_timed_out, Status::gateway_timeout, "body_timed_out"},
    ClientErrorRow{ClientError::timed_out, Status::gateway_timeout, "timed_out"},
    ClientErrorRow{ClientError::connection_lost, Status::bad_gateway, "connection_lost"},
    ClientErrorRow{ClientError::bad_response, Status::bad_gateway, "bad_response"},
    ClientErrorRow{ClientError::body_too_large, Status::bad_gateway, "body_too_large"},
    ClientErrorRow{ClientError::bad_json, Status::bad_gateway, "bad_json"},
    ClientErrorRow{ClientError::bad_redirect, Status::bad_gateway, "bad_redirect"},
    ClientErrorRow{ClientError::too_many_redirects, Status::bad_gateway, "too_many_redirects"},
    ClientErrorRow{ClientError::proxy_refused, Status::bad_gateway, "proxy_refused"},
    ClientErrorRow{ClientError::not_processed, Status::service_unavailable, "not_processed"},
};

const ClientErrorRow* find(int value) noexcept {
  for (const ClientErrorRow& row : client_error_rows) {
    if (static_cast<int>(row.error) == value) return &row;
  }
  return nullptr;
}

std::string message_of(Status status) {
  std::string text = "the server answered " + std::to_string(code_of(status));
  if (const std::string_view reason = reason_of(status); !reason.empty()) {
    text.append(" ").append(reason);
  }
  return text;
}

class ClientErrorCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir.http.client"; }
  std::string message(int value) const override {
    if (value >= code_of(Status::bad_request)) return message_of(Status(value));
    const ClientErrorRow* const row = find(value);
    return row != nullptr ? std::string(row->name) : "unknown error";
  }
};

}  // namespace

Status to_status(ClientError error) noexcept {
  const ClientErrorRow* const row = find(static_cast<int>(error));
  return row != nullptr ? row->status : Status::bad_gateway;
}

std::string_view name_of(ClientError error) noexcept {
  const ClientErrorRow* const row = find(static_cast<int>(error));
  return row != nullptr ? row->name : "unknown";
}

std::error_code error_of(Status status) noexcept {
  return {code_of(status), client_error_category()};
}

const std::error_category& client_error_category() noexcept {
  static const ClientErrorCategory category;
  return category;
}

}  // namespace weir::http
