// TCP connections. Unix sockets use the same stream type; see listen/unix_socket.hpp.
#pragma once

#include <new>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/runtime/detail/connection_counters.hpp"
#include "weir/task/task.hpp"

namespace weir::tcp {

/// A connection that belongs to one loop; see weir::Stream. Move-only.
class Stream final : public weir::Stream {
 public:
  /// Takes ownership of `socket` of the loop's backend. Listeners and connect() use it, and make
  /// the ConnectionCounters of the loop before.
  Stream(Loop& loop, loop::Socket& socket) noexcept : weir::Stream(loop), socket_(&socket) {
    ConnectionCounters::made(loop).open.add();
  }
  Stream(Stream&& other) noexcept
      : weir::Stream(other), socket_(std::exchange(other.socket_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept;
  ~Stream() override { close(); }

  /// Sets TCP_NODELAY: the kernel sends small writes immediately. It is on by default and has no
  /// effect on Unix sockets.
  /// Errors: Errc::closed after close(); the kernel's.
  Result<> set_no_delay(bool on);

  Result<> finish_writing() override;
  void close() override;
  Result<> set_close_mode(CloseMode mode) override;
  os::Address peer_address() const override;
  os::Address local_address() const override;
  std::size_t unacked_bytes() const override;
  void observe_hangup(loop::HangupObserver* observer) override;

 private:
  bool start_receive(loop::ReceiveOperation& operation) override;
  bool start_send(loop::SendOperation& operation) override;
  Result<std::size_t> send_file(Bytes before, const os::FilePart& part) override;
  void cancel_operation(loop::Operation& operation) override;
  weir::Stream* move_to(void* room) noexcept override {
    return new (room) Stream(std::move(*this));
  }

  loop::Socket* socket_;
};

/// Connects to `peer`.
/// Errors: the kernel's (ECONNREFUSED, ETIMEDOUT …), Errc::timed_out, Errc::cancelled.
/// Cancel: aborts the attempt.
Task<Result<Stream>> connect(Endpoint peer, IoOptions options = {});

}  // namespace weir::tcp
