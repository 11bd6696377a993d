// TCP connections. The same type serves Unix sockets; see unix_socket.hpp.
#pragma once

#include <utility>

#include "weir/base/result.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir::tcp {

/// A connection of its loop; see weir::Stream. Move-only.
class Stream final : public weir::Stream {
 public:
  /// For listeners and connect(): owns `socket` of the loop's backend.
  Stream(Loop& loop, Socket& socket) noexcept : loop_(&loop), socket_(&socket) {
    loop.count_connection_opened();
  }
  Stream(Stream&& other) noexcept
      : weir::Stream(other), loop_(other.loop_), socket_(std::exchange(other.socket_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept;
  ~Stream() override { close(); }

  /// What is sent leaves at once (TCP_NODELAY); on from the start. Nothing on Unix sockets.
  Result<> set_no_delay(bool on);
  Loop& loop() const noexcept { return *loop_; }

  Result<> finish_writing() override;
  void close() override;
  os::Address peer_address() const override;
  os::Address local_address() const override;
  std::size_t unacknowledged() const override;
  void watch(HangupWatcher* watcher) override;

 private:
  bool start_receive(ReceiveOperation& operation) override;
  bool start_send(SendOperation& operation) override;
  void cancel_operation(Operation& operation) override;

  Loop* loop_;
  Socket* socket_;
};

/// A connection to `peer`. Errors: the kernel's (ECONNREFUSED, ETIMEDOUT …), Errc::cancelled.
/// Cancel: gives the attempt up.
Task<Result<Stream>> connect(Endpoint peer);

}  // namespace weir::tcp
