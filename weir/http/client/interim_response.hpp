// A 1xx response that comes before the response to a request.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// The head of an interim response (RFC 9110 §15.2), such as 103 (Early Hints).
/// Threads: the core of its client.
/// Lifetime: that of the call that gets it; its texts too.
class InterimResponse {
 public:
  explicit InterimResponse(const ReceivedResponseHead& head) noexcept : head_(head) {}
  InterimResponse(const InterimResponse&) = delete;
  InterimResponse& operator=(const InterimResponse&) = delete;

  Status status() const noexcept { return head_.status(); }
  /// Returns the value of the first header called `name`, compared without case.
  std::optional<std::string_view> header(std::string_view name) const noexcept {
    return head_.header(name);
  }
  std::size_t header_count() const noexcept { return head_.header_count(); }
  /// Returns the header at `index`, in the order of arrival.
  HeaderField header_at(std::size_t index) const noexcept { return head_.header_at(index); }

 private:
  const ReceivedResponseHead& head_;
};

/// Gets the interim responses to a request; see ClientRequest::on_interim().
using InterimFunction = std::move_only_function<Task<>(const InterimResponse&)>;

}  // namespace weir::http
