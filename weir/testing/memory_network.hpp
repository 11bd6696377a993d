// The network between simulated sockets: who listens where, and how connections come about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/testing/memory_stream.hpp"

namespace weir {

/// Listeners by address and the way to them. Several listeners of one address get its connections
/// in turn. Nothing takes time here: what is sent has arrived.
/// Threads: one. Lifetime: outlives its listeners; streams may outlive it.
class MemoryNetwork {
 public:
  /// `buffer_bytes`: what each direction of a connection holds before sending has to wait.
  explicit MemoryNetwork(std::size_t buffer_bytes) noexcept : buffer_bytes_(buffer_bytes) {}

  struct ListenAsk {
    std::size_t backlog;
    bool reuse_port;
    bool first;  ///< see ListenOptions
  };
  /// Port 0: one that is free. Errors: EADDRINUSE, EAFNOSUPPORT.
  Result<std::unique_ptr<MemoryListener>> listen(const os::Address& address, ListenAsk ask);

  std::unique_ptr<MemoryStream> open_stream() const;

  enum class Answer : std::uint8_t {
    established,
    refused,  ///< nobody listens
    silence,  ///< the listener's queue is full, or it is closing: TCP would try again
  };
  /// One attempt to connect `stream`, which is unconnected.
  Answer connect(MemoryStream& stream, const os::Address& peer);

 private:
  friend class MemoryListener;
  void forget(const MemoryListener& listener);
  bool taken(const os::Address& address, bool reuse_port) const;
  std::vector<MemoryListener*> listeners_for(const os::Address& peer) const;
  std::uint16_t next_port() noexcept;

  std::size_t buffer_bytes_;
  std::vector<MemoryListener*> listeners_;
  std::map<std::string, std::size_t> turns_;  // by address: whose turn it is
  std::uint16_t last_port_ = 0;
};

}  // namespace weir
