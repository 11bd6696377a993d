// The other end of a connection to a simulated server: a raw client without a loop of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/os/address.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// A client that does one thing at a time and waits for nothing: what it does, the server sees in
/// its next turn. Destroying it closes it as the kernel would.
/// Threads: its host's one. Lifetime: shorter than the host's.
class MemoryPeer {
 public:
  /// Connects, or does not: see connected().
  MemoryPeer(MemoryHost& host, const os::Address& server);

  bool connected() const noexcept { return stream_ != nullptr && stream_->connected(); }
  /// Sends as much as the connection holds; returns how much that was.
  std::size_t send(std::string_view text);
  /// Half-close.
  void finish() { static_cast<void>(stream_->shut_down_sending()); }
  void reset() { stream_->reset(); }
  void close() { stream_.reset(); }

  /// Takes at most `size` of the bytes that have arrived; received() grows by them.
  std::size_t read(std::size_t size);
  /// Everything that was read so far, after reading all that is there.
  const std::string& received();
  /// The same without what an earlier call gave.
  std::string take();
  /// Whether the server finished sending, or reset the connection, once all was read.
  bool ended();
  bool was_reset();
  /// What waits to be read.
  std::size_t unread() const noexcept { return stream_ == nullptr ? 0 : stream_->unread(); }

 private:
  std::unique_ptr<MemoryStream> stream_;
  std::string received_;
  std::size_t taken_ = 0;
};

}  // namespace weir
