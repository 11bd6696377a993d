// What a response of a client reads from, and the errors of a connection that was lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/result.hpp"
#include "weir/compression/decompressor.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/http/message/body_length.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/certificate/error.hpp"

namespace weir::http {

/// A ResponseSource has the head of a response and reads its body.
/// Threads: one core's.
class ResponseSource {
 public:
  ResponseSource(const ResponseSource&) = delete;
  ResponseSource& operator=(const ResponseSource&) = delete;

  static void* operator new(std::size_t size) { return BlockPool::allocate(size); }
  static void operator delete(void* memory) noexcept { BlockPool::release(memory); }

  /// Destroys the source, now or when no task of it runs any more.
  virtual void release() noexcept { delete this; }
  /// Returns the next bytes of the body; empty at its end and in all later calls.
  /// Errors: those of ClientResponse::read().
  /// Cancel: no data is lost.
  /// Lifetime: the bytes are valid until the next call.
  virtual Task<Result<Bytes>> read() = 0;
  /// Drops the rest of the body. Later reads fail with `error`.
  virtual void abandon(std::error_code error) noexcept = 0;
  virtual const ReceivedResponseHead& head() const noexcept = 0;
  /// Returns the length of the whole body, which a read does not change.
  virtual BodyLength length() const noexcept = 0;
  /// Returns true if the source removes the coding of the body.
  virtual bool is_decoded() const noexcept { return false; }
  virtual const Headers& trailers() const noexcept = 0;
  virtual bool is_http2() const noexcept = 0;
  /// Returns true if the time of the whole request has passed; see ClientLimits::total_timeout.
  virtual bool late() const = 0;

  const Url& url() const noexcept { return *url_; }
  /// Sets the URL that answered.
  void set_url(Url url) noexcept { url_.emplace(std::move(url)); }
  std::uint64_t body_max() const noexcept { return body_max_; }

 protected:
  explicit ResponseSource(std::uint64_t body_max) noexcept : body_max_(body_max) {}
  virtual ~ResponseSource() = default;

 private:
  std::optional<Url> url_;
  std::uint64_t body_max_;
};

/// Returns the line of the Accept-Encoding header for the codings of this build, or an empty text.
const std::string& accept_encoding_line();

/// Returns a source of the decompressed body, without the headers that describe the coded bytes,
/// and with a weak ETag. The response to HEAD gets the headers of the response to GET. So does a
/// 304, whose ETag becomes weak if the headers of the request name the weak one. Returns `exchange`
/// itself if the response has no coding that the client asked for.
detail::ExchangePtr decoded_response(detail::ExchangePtr exchange, const Headers& request,
                                     const compression::DecompressLimits& limits);

/// Returns true if the server has rejected the connection by TLS. In TLS 1.3, the client learns of
/// the rejection after its handshake (RFC 8446, 4.4.2.4).
inline bool is_alert(const std::error_code& error) noexcept {
  return error == tls::Error::peer_alert;
}

/// Returns the error of a request whose connection has failed with `error`: that alert, or
/// connection_lost.
inline std::error_code lost_error(const std::error_code& error) noexcept {
  return is_alert(error) ? error : make_error_code(ClientError::connection_lost);
}

}  // namespace weir::http
