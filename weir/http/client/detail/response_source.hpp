// The parts of exchanges that do not depend on the version of HTTP.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/compression/decompressor.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/message/body_length.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/certificate/error.hpp"

namespace weir::http {

/// A ResponseSource has the head of a response and reads its body. Each version of HTTP has a class
/// of its own for one request and its response.
/// Threads: one core's.
class ResponseSource {
 public:
  ResponseSource(const ResponseSource&) = delete;
  ResponseSource& operator=(const ResponseSource&) = delete;

  static void* operator new(std::size_t size) { return BlockPool::allocate(size); }
  static void operator delete(void* memory) noexcept { BlockPool::release(memory); }

  /// Destroys the source. A task that still sends is cancelled and destroys it at its end.
  void release() noexcept {
    released_ = true;
    if (is_sending()) return abandon(Errc::cancelled);
    delete this;
  }
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

  /// Returns true if a task sends the request.
  virtual bool is_sending() const noexcept = 0;
  /// Destroys the source if it was released while a task sent the request.
  /// Returns: true if it is destroyed.
  bool destroy_if_released() noexcept {
    const bool released = released_;
    if (released) delete this;
    return released;
  }

 private:
  bool released_ = false;
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

/// The part of a response that has arrived while its request is being sent.
enum class ResponseProgress : std::uint8_t {
  head,      ///< the head, and perhaps a part of the body
  complete,  ///< the end of the body, or of what can still come of it
};

/// Returns true if a response ends the body of its request: a server that has answered with an
/// error or a redirect, or with a whole response, needs no more of it (RFC 9113 §8.1). This is not
/// the rule of a request that a task of a scope sends: an error and a redirect end it, and
/// otherwise it goes on as long as the response exists.
inline bool ends_request(Status status, ResponseProgress progress) noexcept {
  return code_of(status) >= 300 || progress == ResponseProgress::complete;
}

/// The time in which a server must take more of a request if its response has filled all room that
/// the client has for it. Server and client would otherwise wait for each other.
inline constexpr Duration answered_stall_max = std::chrono::seconds(1);

/// Bytes of a long body that ClientLimits::body_timeout limits together.
inline constexpr std::size_t body_slice = 256 * 1024;

/// A RequestSink counts down the length of a body, if it is known. After a failed write, all later
/// ones fail with the same error, because the server has a part of a piece.
class RequestSink : public BodySink {
 public:
  using BodySink::write;
  Task<Result<>> write(Bytes piece) override {
    if (error_) co_return fail(error_);
    if (piece.empty()) co_return {};
    error_ = late() ? make_error_code(ClientError::timed_out) : std::error_code();
    if (!error_ && left_ && piece.size() > *left_) error_ = make_error_code(Errc::bad_input);
    if (error_) co_return fail(error_);
    if (left_) *left_ -= piece.size();
    const Result<> sent = co_await send(piece);
    if (!sent) error_ = sent.error();
    co_return sent;
  }
  /// Returns the first error; bad_input if bytes of a known length are missing.
  std::error_code error() const noexcept {
    if (!error_ && left_.value_or(0) > 0) return make_error_code(Errc::bad_input);
    return error_;
  }

 protected:
  explicit RequestSink(std::optional<std::uint64_t> length) noexcept : left_(length) {}
  /// Returns true if all bytes of a known length were given to send().
  bool whole() const noexcept { return left_ == std::uint64_t{0}; }

 private:
  /// Returns true if the time of the whole request has passed.
  virtual bool late() const = 0;
  virtual Task<Result<>> send(Bytes piece) = 0;

  std::optional<std::uint64_t> left_;
  std::error_code error_;
};

}  // namespace weir::http
