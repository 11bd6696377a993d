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

namespace weir::loop {
class RunQueue;
class RunQueue;
}  // namespace weir::loop

namespace weir {

// The datagram sockets of one simulated backend and their pending operations.

class MemoryPlatform;

/// MemoryDatagrams implements the datagram functions of MemoryBackend.
/// Threads: that of the platform.
class MemoryDatagrams {
 public:
  MemoryDatagrams(MemoryPlatform& platform, loop::RunQueue& ready,
                  loop::BackendCounters& counters) noexcept;
  /// Closes the sockets that are still open.
  ~MemoryDatagrams();

  bool owns(const loop::Socket& socket) const { return entries_.contains(socket.descriptor); }
  Result<loop::Socket*> adopt(loop::Descriptor descriptor);
  void close(loop::Socket& socket);
  bool receive(loop::Socket& socket, loop::ReceiveDatagramsOperation& operation);
  bool send(loop::Socket& socket, loop::SendDatagramsOperation& operation);
  /// Cancels an operation that is pending on one of these sockets.
  void cancel(loop::Operation& operation);

  /// Finishes operations that have become possible.
  void take_changes();
  bool has_work() const noexcept { return !changed_.empty(); }
  std::size_t receiving() const;

 private:
  struct Entry;

  static Entry& entry_of(loop::Socket& socket) noexcept;
  bool try_receive(Entry& entry, loop::ReceiveDatagramsOperation& operation);
  void progress(Entry& entry);
  /// Reports the finish of `operation`. Returns true.
  bool finished(const loop::Operation& operation);

  MemoryPlatform& platform_;
  loop::RunQueue& ready_;
  loop::BackendCounters& counters_;
  std::map<int, std::unique_ptr<Entry>> entries_;  // by descriptor
  detail::List<Entry> changed_;
};

class Nondeterminism;
class MemoryPlatform;

/// MemoryBackend is the backend of a MemoryPlatform. Operations finish immediately if a real
/// socket's could, unless the platform's Nondeterminism defers them. A connect always takes until
/// the next wait(), as a handshake does. A file operation takes MemoryPlatformOptions::file_time.
///
/// The function wait() does not block. It moves the platform's clock to the next event, at most
/// to `until`, as long as no operation has finished. It does not move the clock if the platform
/// has several backends; MemoryPlatform::run() or advance() then does. It returns without a
/// result if there is nothing to wait for.
/// Threads: that of the platform, except for wake().
class MemoryBackend final : public loop::Backend {
 public:
  MemoryBackend(MemoryPlatform& platform, loop::RunQueue& ready);
  ~MemoryBackend() override;
  MemoryBackend(const MemoryBackend&) = delete;
  MemoryBackend& operator=(const MemoryBackend&) = delete;

  std::string_view name() const noexcept override { return "memory"; }
  Result<loop::Socket*> adopt(loop::Descriptor descriptor, loop::SocketOptions options) override;
  void close(loop::Socket& socket) override;
  bool receive(loop::Socket& socket, loop::ReceiveOperation& operation) override;
  bool send(loop::Socket& socket, loop::SendOperation& operation) override;
  bool accept(loop::Socket& socket, loop::AcceptOperation& operation) override;
  void stop_accepting(loop::Socket& socket) override;
  bool connect(loop::Socket& socket, loop::ConnectOperation& operation) override;
  bool receive_datagrams(loop::Socket& socket,
                         loop::ReceiveDatagramsOperation& operation) override {
    return datagrams_.receive(socket, operation);
  }
  bool send_datagrams(loop::Socket& socket, loop::SendDatagramsOperation& operation) override {
    return datagrams_.send(socket, operation);
  }
  bool does_files() const noexcept override;
  void start_file(loop::FileOperation& operation) override;
  void cancel(loop::Operation& operation) override;
  Result<> shut_down_sending(loop::Socket& socket) override;
  void observe_hangup(loop::Socket& socket, loop::HangupObserver* observer) override;
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

  static Entry& entry_of(loop::Socket& socket) noexcept;
  void progress(Entry& entry);
  void report_hangup(Entry& entry);
  void take_changes();

  // Each function tries to finish the operation. It returns false if the operation has to wait.
  bool try_receive(Entry& entry, loop::ReceiveOperation& operation);
  bool try_send(Entry& entry, loop::SendOperation& operation);
  bool try_accept(Entry& entry, loop::AcceptOperation& operation);
  bool try_connect(Entry& entry, loop::ConnectOperation& operation);
  bool finished_at_once(const loop::Operation& operation);
  void finish_file(loop::FileOperation& operation);
  void retry_later(Entry& entry, Duration delay);
  void cancel_retry(Entry& entry);

  MemoryPlatform& platform_;
  Nondeterminism& nondeterminism_;
  loop::RunQueue& ready_;
  std::map<int, std::unique_ptr<Entry>> entries_;  // by descriptor
  detail::List<Entry> changed_;
  detail::List<Entry> unfinished_;  // entries that the next wait() continues with
  MemoryDatagrams datagrams_{platform_, ready_, counters_};
  // Pending file operations and the events that finish them.
  std::map<loop::FileOperation*, MemoryClock::EventId> files_;
  std::atomic<bool> woken_{false};
};

}  // namespace weir
