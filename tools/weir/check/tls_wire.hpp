// TlsWire: a raw connection to a TLS server, for hostile handshakes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/check_target.hpp"
#include "tools/weir/check/client_hello.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// A ServerHello (RFC 8446, 4.1.3).
struct ServerHello {
  std::uint16_t version = 0;  ///< negotiated version, such as 0x0304
  std::uint16_t suite = 0;
  std::uint8_t compression = 0;
  bool retry = false;       ///< true: a HelloRetryRequest
  bool downgraded = false;  ///< true: the random says that the server also has TLS 1.3
  std::vector<ExtensionType> extensions;

  bool has(ExtensionType type) const noexcept;
};

/// Reads what a server sends before its encryption begins. Later records are counted only.
class ServerFlight {
 public:
  void read(std::string_view bytes);

  /// Returns the last ServerHello.
  const std::optional<ServerHello>& hello() const noexcept { return hello_; }
  /// Returns the description of the last alert in plain text; RFC 8446, 6 has the numbers.
  std::optional<std::uint8_t> alert() const noexcept { return alert_; }
  /// Returns true if the server has sent a heartbeat.
  bool heartbeat() const noexcept { return heartbeat_; }
  /// Returns at most 200 bytes, from the first byte that is not part of a record.
  const std::string& other() const noexcept { return other_; }
  bool answered() const noexcept { return hello_ || alert_ || !other_.empty(); }
  void forget_hello() noexcept { hello_.reset(); }

 private:
  void read_handshake(std::string_view bytes);

  std::string input_;
  std::string messages_;  // of the handshake
  std::optional<ServerHello> hello_;
  std::optional<std::uint8_t> alert_;
  bool heartbeat_ = false;
  std::string other_;
};

/// A TlsWire sends raw bytes to the target and reads the server's flight.
/// Threads: its loop.
/// Lifetime: the target outlives it. No call is in progress when it is destroyed.
class TlsWire {
 public:
  explicit TlsWire(const CheckTarget& target) noexcept : target_(target) {}

  /// Connects to the target, without a handshake.
  /// Returns: true if connected; else describe() has the reason.
  /// Cancel: returns false, like a failure to connect.
  Task<bool> open();
  /// Sends `bytes`, for at most `wait_timeout`.
  /// Returns: true if all bytes were sent.
  /// Cancel: ends early.
  Task<bool> send(std::string_view bytes, Duration wait_timeout);
  /// Sends and receives at the same time, until the server has answered or closed.
  /// Cancel: ends early.
  Task<> exchange(std::string_view bytes, Duration wait_timeout);
  /// Receives until the server has closed, for at most `wait_timeout`.
  /// Returns: true if it has closed.
  /// Cancel: ends early.
  Task<bool> wait_for_close(Duration wait_timeout);
  /// Ends sending on this side.
  void finish_writing();

  ServerFlight& flight() noexcept { return flight_; }
  bool connected() const noexcept { return connect_error_.empty(); }
  bool is_closed() const noexcept { return closed_; }
  /// Describes the answer: "ServerHello of TLS 1.3 with suite 1301", "alert 70, closed".
  std::string describe() const;

 private:
  Task<> write(std::string_view bytes);
  Task<> receive_answer(Duration wait_timeout);
  Task<> receive(Duration wait_timeout, bool until_answered);

  const CheckTarget& target_;
  std::optional<AnyStream> stream_;
  ServerFlight flight_;
  std::string connect_error_;
  bool closed_ = false;
};

}  // namespace weir::check
