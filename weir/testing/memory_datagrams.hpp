// The datagram sockets of one simulated backend, with what is pending on them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "weir/base/detail/list.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/testing/network/detail/memory_datagram_network.hpp"

namespace weir {

class MemoryHost;
class RunQueue;

/// The part of MemoryBackend's contract that is about datagrams. Threads: the host's one.
class MemoryDatagrams {
 public:
  MemoryDatagrams(MemoryHost& host, RunQueue& ready, BackendCounters& counters) noexcept;
  /// Closes what is still open.
  ~MemoryDatagrams();

  bool owns(const Socket& socket) const { return entries_.contains(socket.descriptor); }
  Result<Socket*> adopt(Descriptor descriptor);
  void close(Socket& socket);
  bool receive(Socket& socket, ReceiveDatagramsOperation& operation);
  bool send(Socket& socket, SendDatagramsOperation& operation);
  /// Of what is pending on a socket of these.
  void cancel(Operation& operation);

  /// Finishes what has become possible.
  void take_changes();
  bool has_work() const noexcept { return !changed_.empty(); }
  std::size_t receiving() const;

 private:
  struct Entry;

  static Entry& entry_of(Socket& socket) noexcept;
  bool try_receive(Entry& entry, ReceiveDatagramsOperation& operation);
  void progress(Entry& entry);
  /// True.
  bool finished(const Operation& operation);

  MemoryHost& host_;
  RunQueue& ready_;
  BackendCounters& counters_;
  std::map<int, std::unique_ptr<Entry>> entries_;  // by descriptor
  List<Entry> changed_;
};

}  // namespace weir
