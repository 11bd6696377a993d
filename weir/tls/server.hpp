// The server's side of TLS: a Server for the process, and an Acceptor for each core.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/time.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/runtime/options.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/options.hpp"
#include "weir/tls/stream.hpp"
#include "weir/tls/ticket_keys.hpp"

namespace weir::tls {

namespace detail {
class AcceptorState;
struct FilesStatus;
struct ServerFiles;
struct ServerSnapshot;
class ServerTickets;
}  // namespace detail

/// The identities, the trusted CAs and the ticket keys of a server, for all of its cores:
///
///     tls::ServerOptions options;
///     options.files = {{.chain = "cert.pem", .key = "key.pem"}};
///     auto server = std::make_shared<tls::Server>(std::move(options));
///
/// Nothing is read before load(). A change replaces everything or nothing: the new identities are
/// read and checked first, and the old ones stay in use after a failure. Handshakes that begin
/// later use the new ones; connections continue. Other trusted CAs end the proof of the client
/// certificates on open connections (TlsInfo::proof_ended()). A server that is made before worker
/// processes are forked has the same session tickets in all of them (TicketKeys).
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
  /// change of the files. Other trusted CAs also make all older tickets invalid, and end the proof
  /// of the client certificates on open connections. A program with ServerOptions::watch need not
  /// call it again.
  /// Errors: Error::unreadable_file, invalid_certificate, invalid_key, key_mismatch,
  /// certificate_expired, certificate_not_yet_valid, invalid_options, library_failure;
  /// Errc::cancelled.
  /// Cancel: changes nothing.
  Task<Outcome<>> load();
  /// Loads the files again when one of them has changed, until the loop drains; see
  /// ServerOptions::watch. It reads all of them when a time, the size or the inode of one
  /// differs, so a rename and a changed symbolic link count. Files that change without a pause
  /// are loaded after ten times FileWatch::debounce_time, if they fit.
  /// The log has one line for each change: what is loaded, or why the old files stay in use. A load
  /// that fails is repeated at each poll, until the files fit. Several cores may call it at the
  /// same time; one of them reads at each poll. http::serve(), apps and Acceptor::make() call it.
  /// Cancel: ends.
  Task<> watch();
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
  /// Uses these keys for session tickets from the next handshake of each core, and ends the
  /// rotation of the server's own keys.
  void set_ticket_keys(const TicketKeys& keys);

 private:
  friend detail::AcceptorState;
  std::shared_ptr<const detail::ServerSnapshot> snapshot() const;
  std::uint64_t next_load() noexcept;
  Task<Outcome<std::shared_ptr<detail::ServerSnapshot>>> read();
  Task<Outcome<std::shared_ptr<detail::ServerSnapshot>>> check(const detail::ServerFiles& files);
  void join_hot_restart(Loop& loop);
  void publish(std::shared_ptr<detail::ServerSnapshot> snapshot);
  bool publish_newest(std::uint64_t load, std::shared_ptr<detail::ServerSnapshot> snapshot);
  void log_reload_failure(Loop& loop, const std::string& failure);
  bool is_my_poll(Instant now);
  bool is_loaded(const detail::ServerFiles& files) const;
  bool is_loaded(const detail::FilesStatus& status) const;
  void set_loaded(detail::FilesStatus status);
  Task<Outcome<>> reload_changed();

  const ServerOptions options_;
  // Shared with the state that a newer process gets.
  const std::shared_ptr<detail::ServerTickets> tickets_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> loads_begun_{0};
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<const detail::ServerSnapshot> snapshot_;
  std::uint64_t newest_load_ = 0;  // number of the load() that was published last
  bool failure_logged_ = false;
  Instant next_poll_{};
  // Status of the files when their content was last found to be loaded; nullptr: unknown.
  std::shared_ptr<const detail::FilesStatus> loaded_status_;
  std::string reload_failure_;  // the text in the log; empty: the newest files are in use
};

/// The options of a program that serves one endpoint, with or without TLS:
///
///     const auto options = tls::ProgramOptions::from_args(argc, argv);
///     const http::ServeOptions serving{.endpoint = options.endpoint, .tls = options.tls};
struct ProgramOptions : weir::ServerOptions {
  std::shared_ptr<Server> tls = {};  ///< nullptr if the command line has no option of TLS

  /// Parses the command line as weir::ServerOptions::from_args() with TlsArguments does. The server
  /// loads changed files while it serves (FileWatch).
  static ProgramOptions from_args(int argc, char** argv);
  /// Also reads the options of HTTP, for a program that serves HTTP; see http::ProgramOptions.
  static ProgramOptions from_args(int argc, char** argv, HttpArguments& http);
};

/// Performs the handshakes with the clients of one core.
/// Threads: one core's.
/// Lifetime: outlives its calls, but not its streams.
class Acceptor {
 public:
  /// Errors: throws std::bad_alloc.
  Acceptor(Loop& loop, const Server& server);
  /// Makes an acceptor for a server that handles connections in children of `scope`. It loads
  /// `server` if no other core has, and watches its files. The children share the acceptor.
  /// Returns: nullptr if `server` is nullptr; see accept().
  /// Errors: those of Server::load(), which the log explains.
  /// Cancel: passed to the load.
  static Task<Outcome<std::shared_ptr<Acceptor>>> make(Scope& scope,
                                                       std::shared_ptr<Server> server);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor();

  /// Performs the handshake over an accepted stream, and counts a failure. If the client violates
  /// TLS or is rejected, it receives the alert that RFC 8446 defines. The stream then closes at
  /// most a second later, so that the client can read the alert. A timeout and a limit close the
  /// stream immediately; only a client with a too long first message gets an alert. At most one
  /// handshake of a core uses public or private keys in a turn. The pool of the loops signs with
  /// RSA keys of more than 2048 bits, in a lane that leaves a thread to other work. If the loops
  /// keep all CPUs busy, it gets about a tenth of the time.
  /// Returns: the stream, whose tls() describes the connection.
  /// Errors: Error::invalid_options before Server::load(); the errors of handshakes and
  /// certificates in Error; Errc::cancelled.
  /// Cancel: closes the stream.
  Task<Outcome<Stream>> accept(AnyStream inner);

  /// Returns the answer to a client whose first bytes, at least five, are no TLS. The stream then
  /// closes at most a second later. An empty text closes the stream immediately.
  /// Lifetime: the answer lives as long as the process.
  using PlainAnswer = std::string_view (*)(Bytes first) noexcept;
  /// Sets the function that answers such clients. They count as Error::plain_http.
  void set_plain_answer(PlainAnswer answer) noexcept;

 private:
  std::shared_ptr<Server> server_;  // that of make()
  std::unique_ptr<detail::AcceptorState> state_;
};

/// Performs the handshake over an accepted stream, for a program that serves with or without TLS.
/// Returns: the TLS stream; `inner` itself if `acceptor` is nullptr.
/// Errors: those of Acceptor::accept().
/// Cancel: closes the stream.
Task<Outcome<AnyStream>> accept(std::shared_ptr<Acceptor> acceptor, AnyStream inner);

}  // namespace weir::tls
