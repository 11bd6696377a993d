// What a runtime and a server can be told from outside, with its defaults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/runtime/inherited_sockets.hpp"
#include "weir/loop/handover.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/restart_policy.hpp"
#include "weir/os/address.hpp"

namespace weir {

/// What a runtime asks of the kernel so that its loops answer in time whatever else runs on the
/// machine. Where the kernel refuses, a log line says which setting would allow it. The defaults
/// mean well with a machine that others use too: an idle loop sleeps, and what a busy one leaves to
/// others of its CPU is up to kernel.sched_rt_runtime_us (5 % by default).
struct RealTime {
  int priority = 50;        ///< of the loops' threads under SCHED_FIFO, 1 to 99; see sched(7)
  bool lock_memory = true;  ///< all memory of the process stays in RAM, until the process ends
  /// Of blocks for frames, connections and buffers that each core makes and touches before it runs.
  std::size_t pool_bytes = 4 * 1024 * 1024;
  /// A refusal of the scheduling or of locked memory ends the run with status 1 instead of going on
  /// without. (Pinning is not the kernel's to refuse, but a quota's; that is only told.)
  bool required = false;
};

/// Several processes instead of one: a crash ends one of them, the others serve on, and it begins
/// again. A supervisor, which does nothing else, makes them by fork; each is a runtime of its own
/// with an equal share of the cores (those that are left over are not used). Between processes
/// there is no on_core(), PerCore, mailbox or balance.
struct ProcessOptions {
  unsigned count = 2;
  /// Everything that the program listens on. The supervisor opens it once and keeps it open: who
  /// waits in the queue of a worker that has crashed, or comes to it meanwhile, is served when that
  /// begins again. A worker that listens elsewhere meets the others there (EADDRINUSE). For
  /// datagrams each worker has sockets of its own on a port that is named and shared
  /// (udp::Options::reuse_port); on port 0 each gets another one.
  std::vector<Endpoint> endpoints = {};
  RestartPolicy restart = {};
};

struct RuntimeOptions {
  unsigned cores = 0;  ///< loops, of all processes; 0: one per physical core that may be used
  BackendChoice backend = BackendChoice::automatic;
  bool pin = true;                               ///< each loop's thread stays on its core, unless
                                                 ///< a cgroup quota left some cores out
  Duration deadline = std::chrono::seconds(10);  ///< how long a drain may take
  bool handle_signals = true;  ///< SIGINT and SIGTERM drain, the second one stops at once
  bool announce = true;        ///< log what runs where, and why, at the start
  /// Loops never sleep: the kernel is asked again and again, and nobody need wake them. For a core
  /// that nobody else uses.
  bool busy_poll = false;
  /// How long a loop that has nothing to do asks the kernel again before it sleeps, 50 to 200 us as
  /// a rule: who is asked again soon answers sooner, by what waking a core costs, and uses more of
  /// its CPU. Where that was in vain it is tried ever more seldom. Zero: loops sleep at once.
  Duration busy_wait = {};
  std::optional<RealTime> real_time = {};  ///< together with `pin`, as a rule
  /// Sockets for the addresses that are listened on, instead of opening them; see
  /// inherited_sockets_from_environment().
  std::vector<InheritedSocket> inherited = {};
  /// Hot restart: the sockets of an older process of this service are taken over, if there is one,
  /// and given to the next; see Handover. run_on_each_core() fails, and the older process goes on,
  /// where that cannot be or where this process does not listen on all of them in time. Once a
  /// newer process has taken over, this one drains, and run_on_each_core() returns 0.
  std::optional<HandoverOptions> takeover = {};
  /// The program must not have threads yet (no pool, no other runtime). SIGINT and SIGTERM to the
  /// supervisor drain all workers, at once and with one deadline; sent to a worker they mean
  /// nothing. Other signals are left alone: a SIGHUP ends the supervisor, and with it all workers.
  /// run_on_each_core() returns in each worker, as without processes, and in the supervisor: 0 when
  /// all have ended well; 1 when one has not, or has crashed too often in a row, or could not
  /// begin. Not together with `takeover` and `inherited`: refused.
  std::optional<ProcessOptions> processes = {};
};

/// The options of a program that serves one endpoint.
struct ServerOptions : RuntimeOptions {
  Endpoint endpoint = Endpoint::any(8080);

  /// From --port N, --address A, --cores N, --backend B, --no-pin, --deadline SECONDS, --busy-poll,
  /// --busy-wait MICROSECONDS, --real-time PRIORITY, --real-time-required, --takeover PATH and
  /// --processes N. For --help and --version ("PROGRAM on Weir 1.2.3") prints what is asked and
  /// exits with 0; prints one line and exits with 2 for what is wrong.
  static ServerOptions from_args(int argc, char** argv);
};

}  // namespace weir
