// Hot restart on the operating system: sockets pass from process to process over a Unix socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weir/loop/contract/detail/handover.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/loop/detail/process/handover_connection.hpp"
#include "weir/loop/detail/process/handover_protocol.hpp"
#include "weir/os/address.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::loop {

// The processes of a service meet at a Unix socket with a path.

/// See HandoverEndpoint. It waits for the first messages of several connections at the same time,
/// so silent connections hold up no newer process. At most 16 connections may be silent, for at
/// most 5 s; a further connection replaces the oldest of them.
class OsHandoverEndpoint final : public HandoverEndpoint {
 public:
  /// `event` is an eventfd, which notify() signals.
  OsHandoverEndpoint(Platform& platform, const os::Address& path, os::Fd event);

  std::string name() const override { return path_.to_string(); }
  Result<std::unique_ptr<HandoverConnection>> connect_or_listen() override;
  const Descriptor& socket() const noexcept override { return listener_; }
  void set_socket(Descriptor socket) override { listener_ = std::move(socket); }
  void take_ownership() noexcept override { file_ = std::exchange(older_file_, std::nullopt); }
  void drop_ownership() noexcept override { file_.reset(); }
  void close() noexcept override;

  std::unique_ptr<HandoverConnection> accept_newer() override;
  bool wait(Instant until) override;
  void notify() noexcept override;

 private:
  /// A connection without a first message.
  struct Silent {
    os::Fd connection;
    Instant deadline;
  };
  static constexpr std::size_t silent_max = 16;

  bool accept_silent();
  void drop_overdue();

  Platform& platform_;
  os::Address path_;
  os::Fd event_;
  Descriptor listener_;
  std::vector<Silent> silent_;                  // the oldest first
  std::optional<os::FileIdentity> file_;        // identity of the path while this process owns it
  std::optional<os::FileIdentity> older_file_;  // the same while the older process owns it
};

// An older and a newer process exchange messages over a Unix socket.

/// See HandoverConnection.
/// Lifetime: the owner of the event outlives it.
class OsHandoverConnection final : public HandoverConnection {
 public:
  /// `interrupt_event` is an eventfd; a signal on it interrupts receive().
  OsHandoverConnection(Platform& platform, os::Fd connection, int interrupt_event);

  std::string peer_rejection_reason() override;
  ReceiveResult receive(Instant until) override;
  void shut_down_receiving() noexcept override;
  int connection() const noexcept { return connection_.get(); }

 private:
  Result<> do_send(const HandoverMessage& message, std::span<const int> sockets) override;
  ReceiveResult read_message();

  Platform& platform_;
  os::Fd connection_;
  int interrupt_event_;
  std::vector<std::byte> buffer_;
};

/// The result of wait_readable().
enum class Woken : std::uint8_t { readable, interrupted, timed_out };
/// Waits until `descriptor` is readable or `event` (an eventfd) is signalled, at most until
/// `until`. A signalled event wins and is reset.
Woken wait_readable(int descriptor, int event, Instant until);

/// See Handover. Its thread sleeps except while two processes exchange messages.
class OsHandover final : public Handover, ThreadWork {
 public:
  /// Takes the sockets that an older process offers, or makes this process the first at the path.
  static HandoverStart meet(Platform& platform, const HandoverOptions& options);
  ~OsHandover() override;

  HandoverDelegate::Sockets take_sockets() override { return protocol_.take_sockets(); }
  std::string take_state() override { return protocol_.take_state(); }
  Result<> start(HandoverDelegate& delegate) override;
  void on_accepting() noexcept override { protocol_.on_accepting(); }
  void on_socket_stopped() noexcept override { protocol_.on_socket_stopped(); }
  void stop() noexcept override { protocol_.stop(); }

 private:
  OsHandover(Platform& platform, const HandoverOptions& options, const os::Address& path,
             os::Fd event)
      : platform_(platform),
        endpoint_(platform, path, std::move(event)),
        protocol_(platform, options, endpoint_) {}

  std::optional<Instant> step() noexcept override;

  Platform& platform_;
  OsHandoverEndpoint endpoint_;
  HandoverProtocol protocol_;
  HandoverDelegate* delegate_ = nullptr;
  std::unique_ptr<PlatformThread> thread_;  // the last member, because its thread has to end first
};

}  // namespace weir::loop
