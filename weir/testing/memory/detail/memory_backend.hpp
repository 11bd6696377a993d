// The backend of simulated hosts: the same contract, kept by moving bytes in memory.
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
#include "weir/testing/memory_datagrams.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir {

class MemoryChance;
class MemoryHost;
class RunQueue;

/// Operations finish at once where a real socket's could, unless the host's MemoryChance decides
/// otherwise; a connect always takes until the next wait(), as the handshake does, and a file as
/// long as the options of the host say. wait() does
/// not block: while nothing has finished it moves the host's clock to what comes next, at most to
/// `until`; it leaves the clock alone when the host has several backends, because then somebody
/// else decides (MemoryHost::run(), advance()). So without anything to wait for it returns with
/// nothing done. Threads: its host's one, but for wake().
class MemoryBackend final : public Backend {
 public:
  MemoryBackend(MemoryHost& host, RunQueue& ready);
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
  void watch(Socket& socket, HangupWatcher* watcher) override;
  void wait(Instant until) override;
  void wake() noexcept override { woken_.store(true, std::memory_order_release); }

  /// Whether a wait() now would find something to do.
  bool has_work() const noexcept { return !changed_.empty() || datagrams_.has_work(); }
  /// What is pending, for people: "2 receive, 1 accept"; empty if nothing is.
  std::string pending() const;
  /// The same of connections and listeners that are open, whether or not anything is pending.
  std::string open_sockets() const;

 private:
  struct Entry;

  static Entry& entry_of(Socket& socket) noexcept;
  void progress(Entry& entry);
  void tell_hangup(Entry& entry);
  void take_changes();

  // Each tries to finish the operation; false: it has to wait.
  bool try_receive(Entry& entry, ReceiveOperation& operation);
  bool try_send(Entry& entry, SendOperation& operation);
  bool try_accept(Entry& entry, AcceptOperation& operation);
  bool try_connect(Entry& entry, ConnectOperation& operation);
  bool finished_at_once(const Operation& operation);
  void finish_file(FileOperation& operation);
  void try_later(Entry& entry, Duration delay);
  void forget_later(Entry& entry);

  MemoryHost& host_;
  MemoryChance& chance_;
  RunQueue& ready_;
  std::map<int, std::unique_ptr<Entry>> entries_;  // by descriptor
  List<Entry> changed_;
  List<Entry> unfinished_;  // those that the next wait() goes on with
  MemoryDatagrams datagrams_{host_, ready_, counters_};
  std::map<FileOperation*, MemoryClock::EventId> files_;  // pending, and when they finish
  std::atomic<bool> woken_{false};
};

}  // namespace weir
