#include "weir/runtime/options.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/version.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/process/activation.hpp"
#include "weir/runtime/health_check.hpp"

namespace weir {
namespace {

[[noreturn]] void exit_with_error(const std::string& program, const std::string& why) {
  std::fprintf(stderr, "%s: %s (--help shows the options)\n", program.c_str(), why.c_str());
  std::exit(2);
}

/// Returns the program's file name and the version of Weir that it is linked with.
std::string version_of(const std::string& program) {
  return program.substr(program.rfind('/') + 1) + " on Weir " + std::string(version());
}

Endpoint endpoint_of(const std::string& program, const std::string& address, int port) {
  if (address.empty()) return Endpoint::any(static_cast<std::uint16_t>(port));
  const bool bare_ipv6 = address.find(':') != std::string::npos && address.front() != '[';
  const auto parsed =
      Endpoint::parse((bare_ipv6 ? '[' + address + ']' : address) + ':' + std::to_string(port));
  if (!parsed) exit_with_error(program, "--address: '" + address + "' is not an IP address");
  return *parsed;
}

const std::map<std::string, BackendChoice>& backends() {
  static const std::map<std::string, BackendChoice> all{{"auto", BackendChoice::automatic},
                                                        {"uring", BackendChoice::uring},
                                                        {"uring:6.1", BackendChoice::uring_6_1},
                                                        {"epoll", BackendChoice::epoll},
                                                        {"poll", BackendChoice::poll}};
  return all;
}

/// Returns an error text for CLI11 if the value is empty. An unset shell variable gives an empty
/// value, which must not mean "all addresses".
std::string not_empty(const std::string& value) {
  return value.empty() ? "an empty value" : "";
}

/// RawOptions holds option values as text or numbers before they are converted.
struct RawOptions {
  int port = 0;
  std::string address;
  double drain_timeout = 0;
  bool no_pin = false;
  int priority = 0;
  bool required = false;
  std::string backend = "auto";
  int busy_wait = 0;
  std::string hot_restart;
  unsigned processes = 1;
  std::string healthcheck;
};

/// Returns the endpoint that --healthcheck asks: its value, or that of the server.
Endpoint checked_endpoint(const std::string& program, const RawOptions& raw, bool has_tls) {
  if (raw.healthcheck.empty() && has_tls) {
    exit_with_error(program, "--healthcheck: name an endpoint without TLS, such as 127.0.0.1:9090");
  }
  if (raw.healthcheck.empty()) return endpoint_of(program, raw.address, raw.port);
  const auto parsed = Endpoint::parse(raw.healthcheck);
  if (!parsed) {
    exit_with_error(program, "--healthcheck: '" + raw.healthcheck +
                                 "' is not like 127.0.0.1:9090 or unix:/run/admin.sock");
  }
  return *parsed;
}

void add_basic_options(CLI::App& parser, RawOptions& raw, ServerOptions& options) {
  parser.add_option("--port", raw.port, "port to listen on (0: any free port)")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  parser
      .add_option("--address", raw.address,
                  "address to listen on, such as 127.0.0.1 or ::1 (default: all)")
      ->check(not_empty);
  parser.add_option("--cores", options.cores, "event loops (default: one per physical core)")
      ->check(CLI::Range(1, 1024));
  parser
      .add_option("--processes", raw.processes,
                  "worker processes that share the cores; a supervisor restarts them")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  parser.add_option("--backend", raw.backend, "auto, uring, uring:6.1, epoll or poll")
      ->check(CLI::IsMember(backends()))
      ->capture_default_str();
  parser.add_flag("--no-pin", raw.no_pin, "do not pin loops to cores");
}

void add_tuning_options(CLI::App& parser, RawOptions& raw, ServerOptions& options) {
  parser.add_option("--drain-timeout", raw.drain_timeout, "seconds that a shutdown may take")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  parser.add_flag("--busy-poll", options.busy_poll, "loops never sleep");
  parser
      .add_option("--busy-wait", raw.busy_wait,
                  "microseconds that an idle loop stays awake (default: 0)")
      ->check(CLI::Range(0, 1'000'000));
  auto* const real_time =
      parser
          .add_option("--real-time", raw.priority,
                      "run loops under SCHED_FIFO with this priority, in locked memory")
          ->check(CLI::Range(1, 99));
  parser.add_flag("--real-time-required", raw.required, "exit if the kernel refuses --real-time")
      ->needs(real_time);
  parser
      .add_option("--hot-restart", raw.hot_restart,
                  "path of a Unix socket: this process takes over the listening sockets of the "
                  "older process that was started with the same path")
      ->check(not_empty);
}

void add_health_option(CLI::App& parser, RawOptions& raw) {
  parser
      .add_option("--healthcheck", raw.healthcheck,
                  "ask the running instance at this endpoint (default: --address and --port) if it "
                  "is ready, and exit with 0 or 1")
      ->expected(0, 1);
}

void add_tls_options(CLI::App& parser, TlsArguments& tls) {
  // One value for each option, so that a name behind it is not taken as a second file.
  const auto add = [&parser](const std::string& name, std::vector<std::string>& files,
                             const std::string& what) {
    return parser.add_option(name, files, what)
        ->check(CLI::ExistingFile)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  auto* const certificate = add("--tls-cert", tls.certificates,
                                "file with a certificate chain in PEM: serve by TLS (repeat it for "
                                "other names)");
  auto* const key = add("--tls-key", tls.keys, "file with the private key of the certificate");
  certificate->needs(key);
  key->needs(certificate);
  parser
      .add_flag("--tls-self-signed", tls.self_signed,
                "serve by TLS with a new certificate for localhost, for development")
      ->excludes(certificate);
  parser
      .add_option(
          "--tls-ticket-keys", tls.ticket_keys,
          "file with one to three session-ticket keys of 80 bytes, which servers of a fleet "
          "share (default: own keys)")
      ->check(CLI::ExistingFile);
  add("--tls-client-ca", tls.client_cas,
      "file with CAs in PEM: each client needs a certificate of one of them (may be repeated)");
}

void add_http_options(CLI::App& parser, HttpArguments& http) {
  parser.add_flag("--http2-plain", http.http2_plain,
                  "clients may begin with HTTP/2 on plain connections (prior knowledge)");
}

/// The options that only some programs have; nullptr for a program that does not know them.
struct MoreArguments {
  TlsArguments* tls = nullptr;
  HttpArguments* http = nullptr;
};

ServerOptions parse_arguments(int argc, char** argv, const MoreArguments& more) {
  TlsArguments* const tls = more.tls;
  ServerOptions options;
  const std::string program = argc > 0 ? argv[0] : "server";
  RawOptions raw;
  raw.port = options.endpoint.port();
  raw.drain_timeout = std::chrono::duration<double>(options.drain_timeout).count();
  CLI::App parser("A network service on Weir");
  add_basic_options(parser, raw, options);
  add_tuning_options(parser, raw, options);
  add_health_option(parser, raw);
  if (tls != nullptr) add_tls_options(parser, *tls);
  if (more.http != nullptr) add_http_options(parser, *more.http);
  parser.set_version_flag("--version", version_of(program), "print the version of Weir");
  try {
    if (argc > 0) parser.parse(argc, argv);  // CLI11 reads argv[0]
  } catch (const CLI::CallForHelp&) {
    std::fputs(parser.help().c_str(), stdout);
    std::exit(0);
  } catch (const CLI::CallForVersion& version_request) {
    std::printf("%s\n", version_request.what());
    std::exit(0);
  } catch (const CLI::ParseError& error) {
    exit_with_error(program, error.what());
  }

  // CLI::Range accepts a NaN.
  if (std::isnan(raw.drain_timeout))
    exit_with_error(program, "--drain-timeout: not a number of seconds");
  if (raw.processes > 1 && !raw.hot_restart.empty()) {
    exit_with_error(program, "--processes and --hot-restart cannot be combined");
  }
  if (tls != nullptr && tls->certificates.size() != tls->keys.size()) {
    exit_with_error(program, "--tls-cert and --tls-key: each certificate needs one key");
  }
  if (tls != nullptr && !tls->used() && !tls->ticket_keys.empty()) {
    exit_with_error(program, "--tls-ticket-keys needs --tls-cert or --tls-self-signed");
  }
  if (tls != nullptr && !tls->used() && !tls->client_cas.empty()) {
    exit_with_error(program, "--tls-client-ca needs --tls-cert or --tls-self-signed");
  }

  if (more.http != nullptr && more.http->http2_plain && tls != nullptr && tls->used()) {
    exit_with_error(program, "--http2-plain and the options of TLS cannot be combined");
  }

  if (parser.count("--healthcheck") > 0) {
    std::exit(run_health_check(checked_endpoint(program, raw, tls != nullptr && tls->used())));
  }
  options.endpoint = endpoint_of(program, raw.address, raw.port);
  options.backend = backends().at(raw.backend);
  options.pin = !raw.no_pin;
  options.busy_wait = std::chrono::microseconds(raw.busy_wait);
  if (raw.priority != 0) {
    options.real_time = RealTime{.priority = raw.priority, .required = raw.required};
  }
  options.drain_timeout =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(raw.drain_timeout));
  if (!raw.hot_restart.empty()) options.hot_restart = HandoverOptions{.path = raw.hot_restart};
  if (raw.processes > 1) {
    options.processes = ProcessOptions{.count = raw.processes, .endpoints = {options.endpoint}};
  }
  return options;
}

}  // namespace

ServerOptions ServerOptions::from_args(int argc, char** argv) {
  return parse_arguments(argc, argv, {});
}

ServerOptions ServerOptions::from_args(int argc, char** argv, TlsArguments& tls) {
  return parse_arguments(argc, argv, {.tls = &tls});
}

ServerOptions ServerOptions::from_args(int argc, char** argv, TlsArguments& tls,
                                       HttpArguments& http) {
  return parse_arguments(argc, argv, {.tls = &tls, .http = &http});
}

namespace {

/// Returns the value of a variable; empty if it is not set.
std::string_view value_of(std::string_view name, const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    if (variable.size() > name.size() && variable.starts_with(name) &&
        variable[name.size()] == '=') {
      return variable.substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<InheritedSocket>> inherited_sockets_from_environment(
    const char* const* environment) {
  const os::ActivationEnvironment variables{.pid = value_of("LISTEN_PID", environment),
                                            .count = value_of("LISTEN_FDS", environment),
                                            .names = value_of("LISTEN_FDNAMES", environment)};
  WEIR_TRY(auto passed, os::parse_activation(variables, os::process_id()));
  std::vector<InheritedSocket> sockets;
  for (os::ActivatedDescriptor& each : passed) {
    // Programs that this process starts must not inherit it.
    auto done = os::set_on_exec(each.descriptor, os::OnExec::close);
    if (done) done = os::check_listening(each.descriptor);
    if (!done) return fail(done.error());
    WEIR_TRY(const auto endpoint, os::local_address(each.descriptor));
    sockets.push_back({each.descriptor, std::move(each.name), endpoint});
  }
  return sockets;
}

}  // namespace weir
