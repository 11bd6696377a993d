// The server's side of TLS: a Server for the process, and an Acceptor for each core.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weir/net/any_stream.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/options.hpp"
#include "weir/tls/stream.hpp"
#include "weir/tls/ticket_keys.hpp"

namespace weir::tls {

namespace detail {
class AcceptorState;
struct ServerSnapshot;
}  // namespace detail

/// The identities, the trusted CAs and the ticket keys of a server, for all of its cores:
///
///     tls::ServerOptions options;
///     options.files = {{.chain = "cert.pem", .key = "key.pem"}};
///     auto server = std::make_shared<tls::Server>(std::move(options));
///
/// Nothing is read before load(). A change replaces everything or nothing: the new identities are
/// read and checked first, and the old ones stay in use after a failure. Handshakes that begin
/// later use the new ones; connections continue.
/// Threads: any.
/// Lifetime: outlives its acceptors.
class Server {
 public:
  explicit Server(ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  const ServerOptions& options() const noexcept { return options_; }
  /// Reads the files of the options, checks everything, and uses it from then on. Each key must
  /// belong to its certificate, and each certificate must be valid now. Call it again after a
  /// change of the files. Other trusted CAs also make all older tickets invalid.
  /// Errors: Error::unreadable_file, invalid_certificate, invalid_key, key_mismatch,
  /// certificate_expired, certificate_not_yet_valid, invalid_options, library_failure;
  /// Errc::cancelled.
  /// Cancel: changes nothing.
  Task<Outcome<>> load();
  /// Calls load() unless the server is loaded. Several cores may call it at the same time; all of
  /// them use what the first one has loaded, such as one self-signed certificate. The log has the
  /// line of the first failure.
  /// Errors: those of load().
  /// Cancel: changes nothing.
  Task<Outcome<>> load_once();
  /// Returns true after the first successful load().
  bool loaded() const noexcept { return generation() != 0; }
  /// Returns the number of successful changes.
  std::uint64_t generation() const noexcept {
    // acquire pairs with publish(): a caller that reads a number gets at least its snapshot.
    return generation_.load(std::memory_order_acquire);
  }
  /// Uses these keys for session tickets from the next handshake of each core.
  /// Errors: Error::invalid_options before load(), library_failure.
  Outcome<> set_ticket_keys(TicketKeys keys);

 private:
  friend detail::AcceptorState;
  std::shared_ptr<const detail::ServerSnapshot> snapshot() const;
  Task<Outcome<std::shared_ptr<detail::ServerSnapshot>>> read() const;
  void publish(std::shared_ptr<detail::ServerSnapshot> snapshot, const TicketKeys* keys = nullptr);

  const ServerOptions options_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> loads_begun_{0};
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<const detail::ServerSnapshot> snapshot_;
  std::uint64_t newest_load_ = 0;  // number of the load() that was published last
  bool failure_logged_ = false;
};

/// Performs the handshakes with the clients of one core.
/// Threads: one core's.
/// Lifetime: outlives its calls, but not its streams.
class Acceptor {
 public:
  /// Errors: throws std::bad_alloc.
  Acceptor(Loop& loop, const Server& server);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor();

  /// Performs the handshake over an accepted stream. A failure is counted, sends the alert that RFC
  /// 8446 defines for it, and closes the stream. At most one handshake of a core computes in a
  /// turn. Returns: the stream, whose tls() describes the connection. Errors:
  /// Error::invalid_options before Server::load(); the errors of handshakes and certificates in
  /// Error; Errc::cancelled. Cancel: closes the stream.
  Task<Outcome<Stream>> accept(AnyStream inner);

 private:
  std::unique_ptr<detail::AcceptorState> state_;
};

}  // namespace weir::tls
