// WebSockets over HTTP/2 (RFC 8441): the stream of a request carries their bytes.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/result.hpp"
#include "weir/net/stream.hpp"

namespace weir::http {

/// An H2TunnelCarrier is a base of the object of a request whose stream of HTTP/2 becomes a tunnel.
/// It has the operations of the H2Tunnel, and completes them as the stream allows.
/// Threads: those of the connection.
class H2TunnelCarrier {
 public:
  H2TunnelCarrier() = default;
  H2TunnelCarrier(const H2TunnelCarrier&) = delete;
  H2TunnelCarrier& operator=(const H2TunnelCarrier&) = delete;

  // The parts of a Stream. An operation whose start throws std::bad_alloc is pending.

  bool start_receive(loop::ReceiveOperation& operation);
  bool start_send(loop::SendOperation& operation);
  void cancel_operation(loop::Operation& operation);
  void observe_hangup(loop::HangupObserver* observer) noexcept;
  /// Ends the own direction (RFC 8441 §5).
  /// Errors: Errc::closed if it has ended, or the stream was reset.
  virtual Result<> finish_writing() = 0;
  /// Closes the tunnel. The caller does not use the carrier after that.
  virtual void close_tunnel() noexcept = 0;
  virtual Loop& loop() const noexcept = 0;
  virtual os::Address peer_address() const = 0;
  virtual const TlsInfo* tls() const noexcept = 0;

 protected:
  ~H2TunnelCarrier() = default;

  // Events of the stream.

  /// Bytes, the end or a reset have arrived.
  void give_input();
  /// Counts bytes of the pending piece that were sent.
  void count_sent(std::size_t bytes) noexcept {
    if (send_ != nullptr) send_->sent += bytes;
  }
  /// The pending piece was sent.
  void on_piece_sent();
  /// Ends a send that waits.
  void end_send(std::error_code error);

 private:
  virtual bool has_input() const noexcept = 0;
  /// Takes the bytes that have arrived, and returns them to the windows.
  virtual Buffer take_input() = 0;
  /// Returns why nothing more can be received, or no error.
  virtual std::error_code input_error() const noexcept = 0;
  /// Returns true if nothing can be received or sent any more.
  virtual bool is_gone() const noexcept = 0;
  virtual bool may_send() const noexcept = 0;
  /// Sends a piece as far as the windows allow, with count_sent(). The rest becomes the pending
  /// piece, and on_piece_sent() follows.
  /// Returns: true if all of the piece was sent.
  virtual bool send_piece_now(Bytes piece) = 0;
  virtual void drop_piece() noexcept = 0;

  bool send_pieces();

  loop::ReceiveOperation* receive_ = nullptr;
  loop::SendOperation* send_ = nullptr;
  std::span<const Bytes> pieces_;  // of the send, behind the pending one
  loop::HangupObserver* observer_ = nullptr;
};

/// The bytes of a WebSocket over a stream of HTTP/2 (RFC 8441 §5), behind the response.
/// Threads: those of the connection.
/// Lifetime: the carrier outlives it.
class H2Tunnel final : public Stream {
 public:
  explicit H2Tunnel(H2TunnelCarrier& carrier) noexcept;
  H2Tunnel(H2Tunnel&& other) noexcept;
  ~H2Tunnel() override { close(); }

  Result<> finish_writing() override;
  void close() override;
  /// Does nothing: the carrier resets a stream that finish_writing() has not ended.
  Result<> set_close_mode(CloseMode mode) override;
  os::Address peer_address() const override;
  os::Address local_address() const override;
  const TlsInfo* tls() const noexcept override;
  std::size_t unacked_bytes() const override { return 0; }
  void observe_hangup(loop::HangupObserver* observer) override;

 protected:
  bool start_receive(loop::ReceiveOperation& operation) override;
  bool start_send(loop::SendOperation& operation) override;
  void cancel_operation(loop::Operation& operation) override;
  Stream* move_to(void* room) noexcept override;

 private:
  H2TunnelCarrier* carrier_;
};

}  // namespace weir::http
