// A raw client of a simulated server, without a loop of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/os/address.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// A MemoryPeer is a client that performs each action immediately and never waits. The server
/// sees each action in its next turn. Its destructor closes the connection as the kernel would.
/// Threads: that of its platform.
/// Lifetime: the platform outlives it.
class MemoryPeer {
 public:
  /// Tries to connect once; see connected().
  MemoryPeer(MemoryPlatform& platform, const os::Address& server);

  bool connected() const noexcept { return stream_ != nullptr && stream_->connected(); }
  /// Sends as much as the connection holds. Returns the number of bytes.
  std::size_t send(std::string_view text);
  /// Half-closes the connection.
  void finish() { static_cast<void>(stream_->shut_down_sending()); }
  void reset() { stream_->reset(); }
  void close() { stream_.reset(); }

  /// Reads at most `size` of the bytes that have arrived and appends them to received(). Returns
  /// the number of bytes.
  std::size_t read(std::size_t size);
  /// Reads all available data. Returns everything that was read so far.
  const std::string& received();
  /// Returns the part of received() that no earlier call has returned.
  std::string take();
  /// Return true if the server has ended its sending, or reset the connection, and all data was
  /// read. Both read all available data first.
  bool ended();
  bool was_reset();
  /// Returns the number of bytes that can be read.
  std::size_t unread() const noexcept { return stream_ == nullptr ? 0 : stream_->unread(); }

 private:
  std::unique_ptr<MemoryStream> stream_;
  std::string received_;
  std::size_t taken_ = 0;
};

}  // namespace weir
