// The backend of simulated hosts. It implements the Backend contract by moving bytes in memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "weir/base/detail/list.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/testing/network/detail/memory_clock.hpp"
#include "weir/testing/network/detail/memory_datagram_network.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir {

// The datagram sockets of one simulated backend and their pending operations.

class MemoryPlatform;
class RunQueue;

/// MemoryDatagrams implements the datagram functions of MemoryBackend.
/// Threads: that of the platform.
class MemoryDatagrams {
 public:
  MemoryDatagrams(MemoryPlatform& platform, RunQueue& ready, BackendCounters& counters) noexcept;
  /// Closes the sockets that are still open.
  ~MemoryDatagrams();

  bool owns(const Socket& socket) const { return entries_.contains(socket.descriptor); }
  Result<Socket*> adopt(Descriptor descriptor);
  void close(Socket& socket);
  bool receive(Socket& socket, ReceiveDatagramsOperation& operation);
  bool send(Socket& socket, SendDatagramsOperation& operation);
  /// Cancels an operation that is pending on one of these sockets.
  void cancel(Operation& operation);

  /// Finishes operations that have become possible.
  void take_changes();
  bool has_work() const noexcept { return !changed_.empty(); }
  std::size_t receiving() const;

 private:
  struct Entry;

  static Entry& entry_of(Socket& socket) noexcept;
  bool try_receive(Entry& entry, ReceiveDatagramsOperation& operation);
  void progress(Entry& entry);
  /// Reports the finish of `operation`. Returns true.
  bool finished(const Operation& operation);

  MemoryPlatform& platform_;
  RunQueue& ready_;
  BackendCounters& counters_;
  std::map<int, std::unique_ptr<Entry>> entries_;  // by descriptor
  List<Entry> changed_;
};

class Nondeterminism;
class MemoryPlatform;
class RunQueue;

/// MemoryBackend is the backend of a MemoryPlatform. Operations finish immediately if a real
/// socket's could, unless the platform's Nondeterminism defers them. A connect always takes until
/// the next wait(), as a handshake does. A file operation takes MemoryPlatformOptions::file_time.
///
/// The function wait() does not block. It moves the platform's clock to the next event, at most
/// to `until`, as long as no operation has finished. It does not move the clock if the platform
/// has several backends; MemoryPlatform::run() or advance() then does. It returns without a
/// result if there is nothing to wait for.
/// Threads: that of the platform, except for wake().
class MemoryBackend final : public Backend {
 public:
  MemoryBackend(MemoryPlatform& platform, RunQueue& ready);
  ~MemoryBackend() override;
  MemoryBackend(const MemoryBackend&) = delete;
  MemoryBackend& operator=(const MemoryBackend&) = delete;

  std::string_view name() const noexcept override { return "memory"; }
  Result<Socket*> adopt(Descriptor descriptor, SocketOptions options) override;
  void close(Socket& socket) override;
  bool receive(Socket& socket, ReceiveOperation& operation) override;
  bool send(Socket& socket, SendOperation& operation) override;
  bool accept(Socket& socket, AcceptOperation& operation) override;
  void stop_accepting(Socket& socket) override;
  bool connect(Socket& socket, ConnectOperation& operation) override;
  bool receive_datagrams(Socket& socket, ReceiveDatagramsOperation& operation) override {
    return datagrams_.receive(socket, operation);
  }
  bool send_datagrams(Socket& socket, SendDatagramsOperation& operation) override {
    return datagrams_.send(socket, operation);
  }
  bool does_files() const noexcept override;
  void start_file(FileOperation& operation) override;
  void cancel(Operation& operation) override;
  Result<> shut_down_sending(Socket& socket) override;
  void observe_hangup(Socket& socket, HangupObserver* observer) override;
  void wait(Instant until) override;
  void wake() noexcept override { woken_.store(true, std::memory_order_release); }

  /// Returns true if a wait() now would find work.
  bool has_work() const noexcept { return !changed_.empty() || datagrams_.has_work(); }
  /// Returns a readable list of pending operations, such as "2 receive, 1 accept"; empty if there
  /// are none.
  std::string pending() const;
  /// Returns a readable list of open connections and listeners; empty if there are none.
  std::string open_sockets() const;

 private:
  struct Entry;

  static Entry& entry_of(Socket& socket) noexcept;
  void progress(Entry& entry);
  void report_hangup(Entry& entry);
  void take_changes();

  // Each function tries to finish the operation. It returns false if the operation has to wait.
  bool try_receive(Entry& entry, ReceiveOperation& operation);
  bool try_send(Entry& entry, SendOperation& operation);
  bool try_accept(Entry& entry, AcceptOperation& operation);
  bool try_connect(Entry& entry, ConnectOperation& operation);
  bool finished_at_once(const Operation& operation);
  void finish_file(FileOperation& operation);
  void retry_later(Entry& entry, Duration delay);
  void cancel_retry(Entry& entry);

  MemoryPlatform& platform_;
  Nondeterminism& nondeterminism_;
  RunQueue& ready_;
  std::map<int, std::unique_ptr<Entry>> entries_;  // by descriptor
  List<Entry> changed_;
  List<Entry> unfinished_;  // entries that the next wait() continues with
  MemoryDatagrams datagrams_{platform_, ready_, counters_};
  // Pending file operations and the events that finish them.
  std::map<FileOperation*, MemoryClock::EventId> files_;
  std::atomic<bool> woken_{false};
};

}  // namespace weir
