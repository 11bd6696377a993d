// Options of a runtime and of a server, with their defaults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/handover.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/supervision.hpp"
#include "weir/os/address.hpp"

namespace weir {

// Listening sockets that a process inherits, such as those of systemd's socket units.

/// An InheritedSocket is a listening socket that was open before this process began. It stays
/// open in this process and in the process manager that passed it. A runtime that drains leaves
/// the connections in its queue to the next process that inherits the socket.
struct InheritedSocket {
  int descriptor;
  std::string name;   ///< name for log lines, such as systemd's FileDescriptorName=
  Endpoint endpoint;  ///< address that it listens on
};

/// Reads the inherited sockets of LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES (sd_listen_fds(3)),
/// for RuntimeOptions::inherited. The program calls this once in main(), with environ(7). Weir
/// never reads the environment on its own.
/// Returns: the sockets; none if the variables are not set or name another process.
/// Errors: Errc::bad_input if the variables are malformed. EBADF, ENOTSOCK, EPROTOTYPE or EINVAL
/// if a descriptor is not a listening stream socket.
Result<std::vector<InheritedSocket>> inherited_sockets_from_environment(
    const char* const* environment);

/// RealTime requests settings of the kernel that keep loops responsive whatever else runs on the
/// machine. If the kernel refuses one, a log line names the setting that would allow it. The
/// defaults suit a machine that runs other programs too: an idle loop sleeps. The kernel limits
/// the CPU share of a busy loop by kernel.sched_rt_runtime_us, which leaves 5 % to other programs
/// by default.
struct RealTime {
  int priority = 50;        ///< SCHED_FIFO priority of the loop threads, 1 to 99; see sched(7)
  bool lock_memory = true;  ///< true to keep all memory of the process in RAM until its end
  /// Memory that each core allocates and touches before it runs, for frames, connections and
  /// buffers.
  std::size_t pool_bytes = 4 * 1024 * 1024;
  /// True if a refused scheduling policy or memory lock ends the run with status 1 instead of
  /// running without it. Pinning is not included: a CPU quota that prevents pinning is only
  /// logged.
  bool required = false;
};

/// ProcessOptions splits a program into several worker processes. A crash ends only one worker;
/// the other workers continue, and the supervisor restarts the one that crashed. The supervisor
/// forks the workers and does nothing else. Each worker is a runtime with an equal share of the
/// cores; a remainder of cores is not used. Workers cannot reach each other by on_core(), PerCore
/// or mailboxes, and connections are not balanced between them.
struct ProcessOptions {
  unsigned count = 2;
  /// All stream endpoints that the program listens on. The supervisor opens them once and keeps
  /// them open. Connections that wait in the queue of a crashed worker, and those that arrive
  /// before its restart, are served after its restart. A worker that listens on any other
  /// endpoint competes for it with the other workers (EADDRINUSE). Each worker opens its own
  /// datagram sockets. They need a fixed port that is shared (udp::Options::reuse_port), because
  /// port 0 gives each worker a different port.
  std::vector<Endpoint> endpoints = {};
  RestartPolicy restart = {};
};

/// RuntimeOptions sets the loops, the processes and the lifecycle of a Runtime.
struct RuntimeOptions {
  unsigned cores = 0;  ///< loops of all processes together; 0: one per usable physical core
  BackendChoice backend = BackendChoice::automatic;
  bool pin = true;  ///< true to pin loop threads to cores, unless a CPU quota excludes cores
  Duration drain_timeout = std::chrono::seconds(10);  ///< time limit of a drain
  /// True if SIGINT and SIGTERM drain, and the second one stops, and if SIGQUIT logs the tasks of
  /// all cores; see report_tasks(). SIGQUIT keeps its effect if the program has a handler for it.
  bool handle_signals = true;
  bool announce = true;  ///< true to log the configuration of the loops at the start
  /// True if loops never sleep: each loop polls the kernel continuously, and other threads need
  /// not wake it. Use it for cores that no other program needs.
  bool busy_poll = false;
  /// Time for which an idle loop polls the kernel before it sleeps, usually 50 to 200 us. A
  /// request that arrives in that time is answered without the cost of waking the core, but the
  /// loop uses more CPU. A loop whose polls find nothing polls less and less often. Zero: loops
  /// sleep immediately.
  Duration busy_wait = {};
  std::optional<RealTime> real_time = {};  ///< usually together with `pin`
  /// Sockets that the runtime uses for their addresses instead of opening new ones; see
  /// inherited_sockets_from_environment().
  std::vector<InheritedSocket> inherited = {};
  /// Hot restart: this process takes over the sockets of an older process of the service, if one
  /// runs. Later it passes them to a newer process; see Handover. The call of run_on_each_core()
  /// fails, and the older process continues, if the takeover is impossible or if this process
  /// does not listen on all sockets in time. This process drains when a newer process has taken
  /// over, and run_on_each_core() then returns 0.
  std::optional<HandoverOptions> hot_restart = {};
  /// Worker processes. The program must not have threads yet (no pool, no other runtime). SIGINT
  /// and SIGTERM to the supervisor drain all workers at the same time, with one time limit;
  /// workers ignore both signals. Weir does not change the handling of other signals: SIGHUP
  /// ends the supervisor and all workers. Each worker returns from run_on_each_core(), as it does
  /// without processes. The supervisor returns 0 from it if all workers ended well. It returns 1 if
  /// a worker failed, crashed too often in a row or could not start. The combination with
  /// `hot_restart` or `inherited` is rejected.
  std::optional<ProcessOptions> processes = {};
};

/// The options of TLS on a command line; see tls::ProgramOptions.
struct TlsArguments {
  std::vector<std::string> certificates;  ///< --tls-cert: paths of chains in PEM
  std::vector<std::string> keys;          ///< --tls-key: path of the key of each chain
  bool self_signed = false;               ///< --tls-self-signed
  std::string ticket_keys = {};           ///< --tls-ticket-keys: path of a file with ticket keys
  /// --tls-client-ca: paths of CAs in PEM. Each client then needs a certificate of one of them.
  std::vector<std::string> client_cas = {};

  /// Returns true if the program is to use TLS.
  bool used() const noexcept { return self_signed || !certificates.empty(); }
};

/// The options of HTTP on a command line; see http::ProgramOptions.
struct HttpArguments {
  /// --http2-plain: plain connections may begin with HTTP/2 (prior knowledge, RFC 9113 §3.3).
  bool http2_plain = false;
};

/// The options of a program that serves one endpoint.
struct ServerOptions : RuntimeOptions {
  Endpoint endpoint = Endpoint::any(8080);

  /// Parses the command line, which may have these options:
  ///
  ///     --port N, --address A, --cores N, --processes N, --backend B, --no-pin,
  ///     --drain-timeout SECONDS, --busy-poll, --busy-wait MICROSECONDS, --real-time PRIORITY,
  ///     --real-time-required, --hot-restart PATH
  ///
  /// Prints the options in this order for --help, or "PROGRAM on Weir 1.2.3" for --version, and
  /// exits with 0. Prints one line and exits with 2 if an option is invalid.
  static ServerOptions from_args(int argc, char** argv);
  /// Also reads --tls-cert FILE and --tls-key FILE, each as often as there are certificates,
  /// --tls-self-signed, and --tls-ticket-keys FILE and --tls-client-ca FILE together with one of
  /// them. The function above refuses them, because a program that does not use them would serve
  /// without TLS.
  static ServerOptions from_args(int argc, char** argv, TlsArguments& tls);
  /// Also reads --http2-plain, which cannot be combined with TLS: there the client chooses by ALPN.
  static ServerOptions from_args(int argc, char** argv, TlsArguments& tls, HttpArguments& http);
};

}  // namespace weir
