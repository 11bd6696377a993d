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
/// Additional errors of a read: Error::truncated if the peer's stream ends without close_notify, so
/// that an attacker may have cut it, Error::bad_record, record_flood and peer_alert. The end after
/// a close_notify is Errc::end_of_stream. Each of these ends reading; after an error other than
/// truncated, writing has ended too.
///
/// finish_writing() sends close_notify and then the end of the inner stream. close() sends a
/// close_notify if the kernel has room for it. unacked_bytes() and the observers are those of the
/// inner stream: they count records, and notice every record as input.
class Stream final : public weir::Stream {
 public:
  explicit Stream(BlockPtr<detail::Session> session) noexcept;
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream() override;

  Result<> finish_writing() override;
  void close() override;
  Loop& loop() const noexcept override;
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
