// RecordWire: a TLS connection whose records the caller changes, cuts and repeats.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "tools/weir/check/response_parser.hpp"
#include "tools/weir/check/wire.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/detail/ssl_engine.hpp"

namespace weir::check {

/// A RecordWire performs a handshake with the target. It then sends any bytes, and opens the
/// records of the server.
class RecordWire final : public Wire {
 public:
  /// The end of the server's data.
  enum class End : std::uint8_t {
    none,          ///< the connection is open
    close_notify,  ///< the server has closed in order
    alert,         ///< the server has rejected the records of this side
    cut,           ///< a close or a reset without close_notify and without an alert
  };
  /// The condition that ends exchange(), beside the end of the connection.
  enum class Until : std::uint8_t { response, end };

  explicit RecordWire(const CheckTarget& target) : Wire(target), name_(target.host) {}

  /// Connects, and performs a handshake that offers no version above `newest`.
  /// Returns: true if that has succeeded; else describe() has the reason.
  /// Cancel: returns false, like a failure to connect.
  Task<bool> open(TlsVersion newest);
  /// Asks for `name` in the handshake of open(), with a ticket of `sessions` for it, and keeps the
  /// tickets of the server there.
  void use_sessions(std::string name, std::shared_ptr<tls::detail::SessionCache> sessions);
  /// Returns true if the server has resumed a session.
  bool resumed() const { return engine_->info().resumed; }
  TlsVersion version() const { return engine_->info().version; }
  /// Returns one record with `plain`.
  std::string sealed(std::string_view plain);
  std::string sealed_close();
  std::string sealed_key_update();
  /// Sends `bytes` and receives at the same time, for at most the timeout of the target.
  /// Cancel: ends early.
  Task<> exchange(std::string_view bytes, Until until);
  /// Asks for a renegotiation.
  /// Returns: true if the server has performed it.
  /// Cancel: ends early.
  Task<bool> renegotiate();
  /// Ends sending on this side, without close_notify.
  void finish_writing();

  End end() const noexcept { return end_; }
  const ResponseParser& responses() const noexcept { return responses_; }
  /// Returns true if the server has sent a 2xx.
  bool accepted() const noexcept;
  /// Describes the answer: "200, alert", "close_notify", "no answer, kept open".
  std::string describe() const;

 private:
  Task<std::string> shake(TlsVersion newest);
  void open_records(Buffer input);
  bool is_done() const noexcept override;
  void on_input(Buffer input) override { open_records(std::move(input)); }
  void on_end(std::error_code) override { end_ = End::cut; }

  std::string name_;  // that of the handshake
  std::shared_ptr<tls::detail::SessionCache> sessions_;
  std::unique_ptr<tls::detail::SslEngine> engine_;
  ResponseParser responses_;
  Until until_ = Until::end;
  End end_ = End::none;
};

}  // namespace weir::check
