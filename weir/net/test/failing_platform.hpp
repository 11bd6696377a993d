// A platform in memory on which a program cannot open sockets. Library code does not include it.
#pragma once

#include <deque>
#include <system_error>
#include <utility>

#include "weir/testing/memory/memory_platform.hpp"

namespace weir {

/// A FailingPlatform fails to open sockets for connections to a peer, with the next errors of a
/// list. An empty error code stands for a success. It opens sockets as usual after the last error.
class FailingPlatform final : public MemoryPlatform {
 public:
  using MemoryPlatform::MemoryPlatform;

  Result<loop::Descriptor> open_stream(const os::Address& peer) override {
    if (const std::error_code error = take(stream_errors)) return fail(error);
    return MemoryPlatform::open_stream(peer);
  }
  Result<loop::Descriptor> open_datagrams(const loop::DatagramOptions& options) override {
    const bool connected = options.peer.family() != os::AddressFamily::none;
    const std::error_code error = connected ? take(datagram_errors) : std::error_code();
    if (error) return fail(error);
    return MemoryPlatform::open_datagrams(options);
  }

  std::deque<std::error_code> stream_errors;
  std::deque<std::error_code> datagram_errors;

 private:
  static std::error_code take(std::deque<std::error_code>& errors) {
    if (errors.empty()) return {};
    const std::error_code error = errors.front();
    errors.pop_front();
    return error;
  }
};

}  // namespace weir
