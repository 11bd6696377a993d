// The checks of limits of the process, of the backend and of the network. Those of CPUs, memory and
// time are in machine_checks_cpu.cpp.
#include "weir/runtime/checks/machine_checks.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "weir/runtime/checks/detail/check.hpp"

namespace weir::checks {
namespace {

using checks::Findings;
using checks::to_text;

/// A server needs a descriptor for each connection. One without a limit of connections chooses it
/// by the descriptors, and should have room for a few.
void check_descriptors(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  constexpr std::uint64_t few = 64;
  if (!facts.open_files_max || !(demands.loops || demands.connections_max)) return;
  const std::uint64_t all = *facts.open_files_max;
  std::uint64_t own =
      demands.descriptors_own.value_or(server_descriptors(checks::loops_of(facts, demands)));
  std::uint64_t left = all > own ? all - own : 0;
  const bool chosen = !demands.connections_max && !demands.descriptors_own;
  if (chosen && left > 0) {
    own = std::max<std::uint64_t>(own, descriptors_reserved);
    left = std::max<std::uint64_t>(all, own + 1) - own;
  }
  const std::uint64_t connections = demands.connections_max.value_or(chosen ? few : 1);
  if (left >= connections) return;
  Finding finding{.check = "descriptors", .severity = Severity::limits};
  finding.found = "at most " + to_text(all) + " open files (RLIMIT_NOFILE)";
  finding.wanted = to_text(own + connections) + " for " + to_text(connections) +
                   (connections == 1 ? " connection" : " connections");
  finding.consequence = "at most " + to_text(left) + " connections; other clients wait";
  if (left == 0) {
    finding.severity = Severity::fatal;
    finding.consequence = "the server listens, but answers no client";
  }
  // A server that asked for nothing else gets the usual limit of Linux.
  const std::uint64_t enough = std::max<std::uint64_t>(own + connections, 1024);
  finding.remedy =
      "ulimit -n " + to_text(enough) + ", or LimitNOFILE=" + to_text(enough) + " in its unit";
  findings.push_back(std::move(finding));
}

void check_io_uring(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (!demands.backend || facts.io_uring_refusal.empty()) return;
  const bool only =
      *demands.backend == BackendChoice::uring || *demands.backend == BackendChoice::uring_6_1;
  if (!only && *demands.backend != BackendChoice::automatic) return;
  findings.push_back({.check = "io_uring",
                      .severity = only ? Severity::fatal : Severity::limits,
                      .found = facts.io_uring_refusal,
                      .wanted = "io_uring",
                      .consequence = only ? "loops cannot be created"
                                          : "epoll is used, with more system calls per request",
                      .remedy = facts.io_uring_remedy});
}

void check_backlog(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (!demands.backlog || !facts.backlog_max || *facts.backlog_max >= *demands.backlog) return;
  findings.push_back({.check = "backlog",
                      .severity = Severity::limits,
                      .found = "net.core.somaxconn is " + to_text(*facts.backlog_max),
                      .wanted = to_text(*demands.backlog),
                      .consequence = "the kernel drops connections of a burst of more than " +
                                     to_text(*facts.backlog_max) + " clients",
                      .remedy = "sysctl -w net.core.somaxconn=" + to_text(*demands.backlog)});
}

void check_syn_backlog(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  // The kernel chooses at least 128 itself. Cookies replace the queue of handshakes if it is full.
  constexpr std::int64_t kernel_minimum = 128;
  if (!demands.backlog || !facts.syn_backlog_max) return;
  const std::int64_t wanted = std::min(*demands.backlog, kernel_minimum);
  if (*facts.syn_backlog_max >= wanted) return;
  findings.push_back({.check = "syn_backlog",
                      .severity = Severity::limits,
                      .found = "net.ipv4.tcp_max_syn_backlog is " + to_text(*facts.syn_backlog_max),
                      .wanted = to_text(wanted),
                      .consequence = "more handshakes at the same time are dropped or lose options",
                      .remedy = "sysctl -w net.ipv4.tcp_max_syn_backlog=1024"});
}

void check_syn_cookies(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (!demands.backlog || facts.syn_cookies.value_or(1) != 0) return;
  findings.push_back({.check = "syn_cookies",
                      .severity = Severity::limits,
                      .found = "net.ipv4.tcp_syncookies is 0",
                      .wanted = "1",
                      .consequence = "a flood of false handshakes keeps clients away",
                      .remedy = "sysctl -w net.ipv4.tcp_syncookies=1"});
}

void check_ports(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (!demands.outgoing_connections || !facts.ports_max) return;
  if (*facts.ports_max >= *demands.outgoing_connections) return;
  findings.push_back(
      {.check = "ports",
       .severity = Severity::limits,
       .found = to_text(*facts.ports_max) + " ports (net.ipv4.ip_local_port_range)",
       .wanted = to_text(*demands.outgoing_connections) + " connections to one address",
       .consequence = "further connections fail with EADDRNOTAVAIL",
       .remedy = "sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\""});
}

/// The kernel drops packets of new connections if its table of connections is full.
void check_tracked_connections(const MachineFacts& facts, const Demands& demands,
                               Findings& findings) {
  if (!demands.backlog || !facts.tracked_connections_max) return;
  const std::int64_t most = *facts.tracked_connections_max;
  const auto wanted = static_cast<std::int64_t>(demands.connections_max.value_or(1));
  const std::int64_t present = facts.tracked_connections.value_or(0);
  const bool full = present >= most - most / 20;  // 95 %
  if (most >= wanted && !full) return;
  findings.push_back(
      {.check = "tracked_connections",
       .severity = Severity::limits,
       .found = "a firewall that tracks " + to_text(present) + " of at most " + to_text(most) +
                " connections (net.netfilter.nf_conntrack_max)",
       .wanted = to_text(wanted) + (wanted == 1 ? " more" : " of clients"),
       .consequence = "the kernel drops packets of further connections",
       .remedy = "sysctl -w net.netfilter.nf_conntrack_max=" +
                 to_text(std::max<std::int64_t>(2 * std::max(most, wanted), 65'536))});
}

void check_privileged_ports(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (!facts.privileged_ports_end || facts.may_bind_any_port) return;
  for (const Endpoint& each : demands.endpoints) {
    const std::int64_t port = each.port();
    if (!each.is_inet() || port == 0 || port >= *facts.privileged_ports_end) continue;
    findings.push_back({.check = "privileged_port",
                        .severity = Severity::fatal,
                        .found = "ports below " + to_text(*facts.privileged_ports_end) +
                                 " need CAP_NET_BIND_SERVICE",
                        .wanted = each.to_string(),
                        .consequence = "the service cannot listen there",
                        .remedy = "AmbientCapabilities=CAP_NET_BIND_SERVICE in its unit, or sysctl "
                                  "-w net.ipv4.ip_unprivileged_port_start=" +
                                  to_text(port)});
  }
}

void check_ipv6(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (facts.ipv6.value_or(true)) return;
  for (const Endpoint& each : demands.endpoints) {
    // The address of all interfaces also serves IPv4.
    if (each.family() != os::AddressFamily::ipv6 || each.is_any()) continue;
    findings.push_back(
        {.check = "ipv6",
         .severity = Severity::fatal,
         .found = "IPv6 is disabled",
         .wanted = each.to_string(),
         .consequence = "the service cannot listen there",
         .remedy = "sysctl -w net.ipv6.conf.all.disable_ipv6=0, or an IPv4 address"});
  }
}

void check_file_size(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  constexpr std::uint64_t small = std::uint64_t{1} << 20;
  if (!demands.writes_files || facts.file_bytes_max.value_or(small) >= small) return;
  findings.push_back(
      {.check = "file_size",
       .severity = Severity::limits,
       .found = "files of at most " + to_text(*facts.file_bytes_max) + " bytes (RLIMIT_FSIZE)",
       .wanted = "no limit",
       .consequence = "logs and uploads end there",
       .remedy = "ulimit -f unlimited, or LimitFSIZE=infinity in its unit"});
}

void check_proc(const MachineFacts& facts, const Demands& demands, Findings& findings) {
  if (facts.proc_mounted || !demands.loops) return;
  findings.push_back({.check = "proc",
                      .severity = Severity::limits,
                      .found = "/proc is not mounted",
                      .wanted = "/proc",
                      .consequence = "limits of the container are unknown, so they are exceeded",
                      .remedy = "mount -t proc proc /proc"});
}

constexpr std::array own_checks = {
    check_proc,
    check_descriptors,
    check_io_uring,
    check_privileged_ports,
    check_ipv6,
    check_backlog,
    check_syn_backlog,
    check_syn_cookies,
    check_file_size,
    check_ports,
    check_tracked_connections,
};

}  // namespace

std::size_t server_descriptors(std::size_t loops) noexcept {
  // Standard input, output and error, two of the shared pool, signals, and the end of the loops.
  constexpr std::size_t process = 7;
  // A loop has its backend, its wake-up and a listener.
  constexpr std::size_t loop = 3;
  return process + loop * loops;
}

Demands default_demands() {
  return {.backlog = ListenOptions().backlog, .backend = BackendChoice::automatic, .loops = true};
}

std::vector<Finding> check_machine(const MachineFacts& facts, const Demands& demands) {
  Findings findings;
  for (const auto check : own_checks) check(facts, demands, findings);
  for (const auto check : checks::cpu_checks()) check(facts, demands, findings);
  sort_by_severity(findings);
  return findings;
}

std::size_t machine_check_count() noexcept {
  return own_checks.size() + checks::cpu_checks().size();
}

}  // namespace weir::checks
