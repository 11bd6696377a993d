// A raw client on a host of a World. It has no loop; events and tests control it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/os/address.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir::sim {

/// A Peer is one connection. It sends the data of send() as soon as the connection has room. It
/// reads arriving data immediately unless set_reading(false) was called.
/// Threads: its World's.
/// Lifetime: its host outlives it.
class Peer final : MemoryObserver {
 public:
  /// Tries to connect once; see connected(). The delay of the handshake is not simulated.
  Peer(MemoryPlatform& host, const os::Address& server);
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer();

  bool connected() const noexcept { return stream_ != nullptr && stream_->connected(); }
  /// Sends `text`. Does nothing if is_closed().
  void send(std::string_view text);
  /// Half-closes the connection after the data of send().
  void finish();
  /// Resets the connection at both ends.
  void reset();
  /// Closes the connection as the kernel does: with a reset if unread data is left. Data that
  /// waits to be sent is dropped.
  void close();
  /// Starts or stops reading. A start reads the waiting data immediately.
  void set_reading(bool reads);

  /// Returns all data that send() accepted while the connection was open.
  const std::string& outgoing() const noexcept { return outgoing_; }
  const std::string& received() const noexcept { return received_; }
  /// Returns true if this side has closed, reset or half-closed the connection.
  bool is_closed() const noexcept { return closed_; }
  /// Returns the result of a read now: EAGAIN while more may come, Errc::end_of_stream, or
  /// ECONNRESET. Returns EBADF after close().
  std::error_code state() const noexcept;

 private:
  void on_change() override;
  void read();
  void write();

  std::unique_ptr<MemoryStream> stream_;
  std::string outgoing_;
  std::size_t sent_ = 0;  // bytes of outgoing_ that were sent
  std::string received_;
  bool reading_ = true;
  bool finished_ = false;
  bool closed_ = false;
};

}  // namespace weir::sim
