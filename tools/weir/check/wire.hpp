// Wire: the base of the raw connections to the server under test.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/weir/check/check_target.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// A Wire connects to the target, and sends and receives at the same time. A derived class reads
/// what the server sends.
/// Threads: its loop.
/// Lifetime: the target outlives it. No call is in progress when it is destroyed.
class Wire {
 public:
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// Sends without receiving, for at most `wait_timeout`.
  /// Returns: true if all bytes were sent.
  /// Cancel: ends early.
  Task<bool> send(std::string_view bytes, Duration wait_timeout);

  bool connected() const noexcept { return trouble_.empty(); }
  bool is_closed() const noexcept { return closed_; }

 protected:
  explicit Wire(const CheckTarget& target) noexcept : target_(target) {}
  virtual ~Wire() = default;

  /// Connects to the target. `tls` performs a handshake, unless it is nullptr.
  /// Returns: true if connected; else trouble() has the reason.
  /// Cancel: returns false, like a failure to connect.
  Task<bool> connect(tls::Connector* tls);
  /// Sends and receives at the same time, for at most `wait_timeout`, until the derived class is
  /// done or the connection has ended. Bytes that are unsent by then are dropped.
  /// Cancel: ends early.
  Task<> transfer(std::string_view bytes, Duration wait_timeout);
  /// Receives, with the same end.
  /// Cancel: ends early.
  Task<> receive(Duration wait_timeout);
  /// Closes the connection immediately. Unread bytes turn the close into a reset.
  void close();

  /// Returns true if nothing more has to be received.
  virtual bool is_done() const noexcept = 0;
  virtual void on_input(Buffer input) = 0;
  /// The connection has ended; is_closed() is true.
  virtual void on_end(std::error_code) {}

  void set_trouble(std::string trouble);
  /// Returns why there is no connection; empty: there is one.
  const std::string& trouble() const noexcept { return trouble_; }
  const CheckTarget& target() const noexcept { return target_; }
  /// Returns the stream, which connect() has made.
  Stream& stream() noexcept { return **stream_; }
  bool has_stream() const noexcept { return stream_.has_value(); }
  /// Returns the TLS of the connection, or nullptr.
  const TlsInfo* tls() const noexcept { return stream_ ? (*stream_)->tls() : nullptr; }

 private:
  Task<> write(std::string_view bytes);
  Task<> receive_then_stop_sending(Duration wait_timeout);

  const CheckTarget& target_;
  std::optional<AnyStream> stream_;
  std::string trouble_;
  bool closed_ = false;
};

}  // namespace weir::check
