#include "weir/runtime/options.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "weir/base/version.hpp"

namespace weir {
namespace {

[[noreturn]] void refuse(const std::string& program, const std::string& why) {
  std::fprintf(stderr, "%s: %s (--help shows the options)\n", program.c_str(), why.c_str());
  std::exit(2);
}

/// How a program names itself: its file, and the Weir that it is linked with.
std::string version_of(const std::string& program) {
  return program.substr(program.rfind('/') + 1) + " on Weir " + std::string(version());
}

Endpoint endpoint_of(const std::string& program, const std::string& address, int port) {
  if (address.empty()) return Endpoint::any(static_cast<std::uint16_t>(port));
  const bool bare_ipv6 = address.find(':') != std::string::npos && address.front() != '[';
  const auto parsed =
      Endpoint::parse((bare_ipv6 ? '[' + address + ']' : address) + ':' + std::to_string(port));
  if (!parsed) refuse(program, "--address: '" + address + "' is no IP address");
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

/// For CLI11: what is wrong with a value, if anything. A shell's unset variable gives an empty one,
/// which must not mean "all addresses".
std::string not_empty(const std::string& value) {
  return value.empty() ? "an empty value" : "";
}

/// What is given as text or number, before it becomes options.
struct Given {
  int port = 0;
  std::string address;
  double deadline = 0;
  bool no_pin = false;
  int priority = 0;
  bool required = false;
  std::string backend = "auto";
  int busy_wait = 0;
  std::string takeover;
  unsigned processes = 1;
};

void add_place(CLI::App& parser, Given& given, ServerOptions& options) {
  parser.add_option("--port", given.port, "port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  parser
      .add_option("--address", given.address,
                  "address to listen on, such as 127.0.0.1 or ::1 (default: all)")
      ->check(not_empty);
  parser.add_option("--cores", options.cores, "event loops (default: one per physical core)")
      ->check(CLI::Range(1, 1024));
  parser
      .add_option("--processes", given.processes,
                  "worker processes that share the cores; one that crashes begins again")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  parser.add_option("--backend", given.backend, "auto, uring, uring:6.1, epoll or poll")
      ->check(CLI::IsMember(backends()))
      ->capture_default_str();
  parser.add_flag("--no-pin", given.no_pin, "do not pin loops to cores");
}

void add_manner(CLI::App& parser, Given& given, ServerOptions& options) {
  parser.add_option("--deadline", given.deadline, "seconds that a shutdown may take")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  parser.add_flag("--busy-poll", options.busy_poll, "loops never sleep");
  parser
      .add_option("--busy-wait", given.busy_wait,
                  "microseconds that an idle loop stays awake (default: 0)")
      ->check(CLI::Range(0, 1'000'000));
  auto* const real_time =
      parser
          .add_option("--real-time", given.priority,
                      "run loops by SCHED_FIFO with this priority, in locked memory")
          ->check(CLI::Range(1, 99));
  parser.add_flag("--real-time-required", given.required, "end where the kernel refuses that")
      ->needs(real_time);
  parser
      .add_option("--takeover", given.takeover,
                  "take the sockets of an older process over, which serves until then: the path "
                  "where they meet")
      ->check(not_empty);
}

}  // namespace

ServerOptions ServerOptions::from_args(int argc, char** argv) {
  ServerOptions options;
  const std::string program = argc > 0 ? argv[0] : "server";
  Given given;
  given.port = options.endpoint.port();
  given.deadline = std::chrono::duration<double>(options.deadline).count();
  CLI::App parser("A network service on Weir");
  add_place(parser, given, options);
  add_manner(parser, given, options);
  parser.set_version_flag("--version", version_of(program), "print which Weir this is");
  try {
    parser.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(parser.help().c_str(), stdout);
    std::exit(0);
  } catch (const CLI::CallForVersion& asked) {
    std::printf("%s\n", asked.what());
    std::exit(0);
  } catch (const CLI::ParseError& error) {
    refuse(program, error.what());
  }

  // A range takes what is no number.
  if (std::isnan(given.deadline)) refuse(program, "--deadline: not a number of seconds");
  if (given.processes > 1 && !given.takeover.empty()) {
    refuse(program, "--processes and --takeover do not go together");
  }

  options.endpoint = endpoint_of(program, given.address, given.port);
  options.backend = backends().at(given.backend);
  options.pin = !given.no_pin;
  options.busy_wait = std::chrono::microseconds(given.busy_wait);
  if (given.priority != 0) {
    options.real_time = RealTime{.priority = given.priority, .required = given.required};
  }
  options.deadline =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(given.deadline));
  if (!given.takeover.empty()) options.takeover = HandoverOptions{.path = given.takeover};
  if (given.processes > 1) {
    options.processes = ProcessOptions{.count = given.processes, .endpoints = {options.endpoint}};
  }
  return options;
}

}  // namespace weir
