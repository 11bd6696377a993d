// A raw client on a host of a World: it has no loop, and does what events and tests tell it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/os/address.hpp"
#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir {

/// One connection. What send() was given leaves as soon as the connection has room, and what has
/// arrived is read at once, unless the peer is told not to read.
/// Threads: its World's. Lifetime: shorter than its host's.
class WorldPeer final : MemoryObserver {
 public:
  /// Tries to connect once; see connected(). What the handshake takes is not simulated.
  WorldPeer(MemoryHost& host, const os::Address& server);
  WorldPeer(const WorldPeer&) = delete;
  WorldPeer& operator=(const WorldPeer&) = delete;
  ~WorldPeer();

  bool connected() const noexcept { return stream_ != nullptr && stream_->connected(); }
  void send(std::string_view text);
  /// Half-closes behind what was sent.
  void finish();
  /// Both sides see a reset.
  void reset();
  /// As the kernel does it: a reset if something was left unread. What waits to leave is dropped.
  void close();
  /// Whether it reads from now on; if so, what waits at once.
  void set_reading(bool reads);

  /// All that it was told to send while it was open.
  const std::string& asked() const noexcept { return asked_; }
  const std::string& received() const noexcept { return received_; }
  /// Whether it has closed, reset or finished by itself.
  bool left() const noexcept { return left_; }
  /// What reading says now: EAGAIN while more may come, Errc::end_of_stream, ECONNRESET; EBADF once
  /// it has closed by itself.
  std::error_code state() const noexcept;

 private:
  void changed() override;
  void read();
  void write();

  std::unique_ptr<MemoryStream> stream_;
  std::string asked_;
  std::size_t sent_ = 0;  // bytes of asked_
  std::string received_;
  bool reads_ = true;
  bool finishing_ = false;
  bool left_ = false;
};

}  // namespace weir
