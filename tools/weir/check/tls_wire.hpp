// TlsWire: a raw connection to a TLS server, for hostile handshakes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/client_hello.hpp"
#include "tools/weir/check/wire.hpp"
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
class TlsWire final : public Wire {
 public:
  explicit TlsWire(const CheckTarget& target) noexcept : Wire(target) {}

  /// Connects to the target, without a handshake.
  /// Returns: true if connected; else describe() has the reason.
  /// Cancel: returns false, like a failure to connect.
  Task<bool> open();
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
  /// Describes the answer: "ServerHello of TLS 1.3 with suite 1301", "alert 70, closed".
  std::string describe() const;

 private:
  bool is_done() const noexcept override { return until_answered_ && flight_.answered(); }
  void on_input(Buffer input) override { flight_.read(input.text()); }

  ServerFlight flight_;
  bool until_answered_ = true;
};

}  // namespace weir::check
