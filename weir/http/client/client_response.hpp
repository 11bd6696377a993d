// A response that a client receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/http/message/body_length.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/json/read.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class ResponseSource;
namespace detail {

/// Ends the exchange of a response that nothing uses any more.
struct ReleaseExchange {
  void operator()(ResponseSource* exchange) const noexcept;
};
using ExchangePtr = std::unique_ptr<ResponseSource, ReleaseExchange>;

}  // namespace detail

/// A response whose head has arrived; move-only. Its body is read on demand, so that a slow reader
/// slows down the server. The connection is free for other requests when read() or body() has
/// returned the end of the body. If the object is destroyed before, the connection is closed unless
/// the whole body has arrived. Over HTTP/2, only the response is cancelled then.
/// Threads: the core of its client.
/// Lifetime: the client outlives it. No read is pending when it is moved or destroyed (asserted).
class ClientResponse {
 public:
  explicit ClientResponse(detail::ExchangePtr exchange) noexcept : exchange_(std::move(exchange)) {}

  Status status() const noexcept;
  /// Returns an error if the status is 400 or more, for callers that need a success:
  /// `WEIR_CO_TRY(response.error_for_status());`.
  /// Errors: error_of(status()).
  Result<> error_for_status() const {
    if (status() >= Status::bad_request) return fail(error_of(status()));
    return {};
  }
  /// Returns the value of the first header called `name`, compared without case.
  /// Lifetime: the text is valid as long as the response.
  std::optional<std::string_view> header(std::string_view name) const noexcept;
  std::size_t header_count() const noexcept;
  /// Returns the header at `index`, in the order of arrival.
  /// Lifetime: the texts are valid as long as the response.
  HeaderField header_at(std::size_t index) const noexcept;
  /// Returns the URL that answered. It differs from that of the request after a redirect.
  const Url& url() const noexcept;
  /// Returns the version of HTTP that carried the response. Nothing else differs between them.
  Version version() const noexcept;

  /// Returns the length of the body that read() gives. A response to HEAD has none, whatever its
  /// headers announce, and a decompressed body has an unknown length.
  BodyLength body_length() const noexcept;
  /// Returns true if the client removes the coding of the body; see ClientOptions::decompression.
  bool has_decoded_body() const noexcept;
  /// Returns the next piece of the body; empty at its end.
  /// Errors: ClientError (connection_lost, bad_response, body_timed_out, timed_out);
  /// Errc::cancelled. An incomplete body is always an error, and later reads fail with it again.
  /// Cancel: no data is lost; the next call returns the piece.
  /// Lifetime: the piece is valid until the next call.
  Task<Result<Bytes>> read();
  /// Returns the whole body, or the rest after earlier calls of read().
  /// Errors: those of read(); ClientError::body_too_large above ClientLimits::body_max, after which
  /// the connection is closed.
  /// Cancel: drops the pieces that were read; the connection is closed when the object is
  /// destroyed.
  Task<Result<std::string>> body();
  /// Returns the body as a T. The media type is not checked.
  /// Errors: those of body(); ClientError::bad_json.
  /// Cancel: that of body().
  template <class T>
  Task<Result<T>> json() {
    auto text = co_await body();
    if (!text) co_return fail(text.error());
    auto value = weir::json::read<T>(*text);
    if (!value) co_return fail(ClientError::bad_json);
    co_return std::move(*value);
  }
  /// Returns the trailer fields after a chunked body, or after a body of HTTP/2; complete once
  /// read() has returned the end.
  const Headers& trailers() const noexcept;

 private:
  friend class Client;

  detail::ExchangePtr exchange_;
};

}  // namespace weir::http
