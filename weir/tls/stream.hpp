// The TLS stream: a Stream over another Stream.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/result.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/os/address.hpp"

namespace weir::tls {

namespace detail {
class Session;
}

/// A TLS connection over an inner stream, after its handshake; see weir::Stream. An Acceptor or a
/// Connector makes it. tls() is never nullptr while it is open. Move-only.
///
/// The end after the peer's close_notify is Errc::end_of_stream. The end without one is
/// Error::truncated, because an attacker may have cut the stream. Other errors of a read are
/// Error::bad_record, record_flood and peer_alert, which also end writing.
///
/// finish_writing() sends close_notify and then the end of the inner stream. A close sends
/// close_notify too, if the kernel has room for it and the mode is CloseMode::orderly.
/// unacked_bytes() counts bytes of records. An observer of input is also called for a record
/// without data.
class Stream final : public weir::Stream {
 public:
  explicit Stream(BlockPtr<detail::Session> session) noexcept;
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream() override;

  Result<> finish_writing() override;
  void close() override;
  Result<> set_close_mode(CloseMode mode) override;
  os::Address peer_address() const override;
  os::Address local_address() const override;
  const TlsInfo* tls() const noexcept override;
  std::size_t unacked_bytes() const override;
  void observe_hangup(loop::HangupObserver* observer) override;

 private:
  bool start_receive(loop::ReceiveOperation& operation) override;
  bool start_send(loop::SendOperation& operation) override;
  void cancel_operation(loop::Operation& operation) override;
  std::size_t sent_of(const loop::SendOperation& operation) const noexcept override;
  weir::Stream* move_to(void* room) noexcept override {
    return new (room) Stream(std::move(*this));
  }

  friend detail::Session;

  BlockPtr<detail::Session> session_;
};

}  // namespace weir::tls
