#include "weir/cores/options.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace weir {
namespace {

[[noreturn]] void refuse(const std::string& program, const std::string& why) {
  std::fprintf(stderr, "%s: %s (--help shows the options)\n", program.c_str(), why.c_str());
  std::exit(2);
}

Endpoint endpoint_of(const std::string& program, const std::string& address, int port) {
  if (address.empty()) return Endpoint::any(static_cast<std::uint16_t>(port));
  const bool bare_ipv6 = address.find(':') != std::string::npos && address.front() != '[';
  const auto parsed =
      Endpoint::parse((bare_ipv6 ? '[' + address + ']' : address) + ':' + std::to_string(port));
  if (!parsed) refuse(program, "--address: '" + address + "' is no IP address");
  return *parsed;
}

}  // namespace

ServerOptions ServerOptions::from_args(int argc, char** argv) {
  ServerOptions options;
  const std::string program = argc > 0 ? argv[0] : "server";
  int port = options.endpoint.port();
  std::string address;
  double deadline = std::chrono::duration<double>(options.deadline).count();
  bool no_pin = false;
  int priority = 0;
  bool required = false;
  const std::map<std::string, BackendChoice> backends{{"auto", BackendChoice::automatic},
                                                      {"uring", BackendChoice::uring},
                                                      {"uring:6.1", BackendChoice::uring_6_1},
                                                      {"epoll", BackendChoice::epoll},
                                                      {"poll", BackendChoice::poll}};
  std::string backend = "auto";
  int busy_wait = 0;
  std::string takeover;

  CLI::App parser("A network service on Weir");
  parser.add_option("--port", port, "port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  parser.add_option("--address", address,
                    "address to listen on, such as 127.0.0.1 or ::1 (default: all)");
  parser.add_option("--cores", options.cores, "event loops (default: one per physical core)")
      ->check(CLI::Range(1, 1024));
  parser.add_option("--backend", backend, "auto, uring, uring:6.1, epoll or poll")
      ->check(CLI::IsMember(backends))
      ->capture_default_str();
  parser.add_flag("--no-pin", no_pin, "do not pin loops to cores");
  parser.add_option("--deadline", deadline, "seconds that a shutdown may take")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  parser.add_flag("--busy-poll", options.busy_poll, "loops never sleep");
  parser
      .add_option("--busy-wait", busy_wait,
                  "microseconds that an idle loop stays awake (default: 0)")
      ->check(CLI::Range(0, 1'000'000));
  auto* const real_time =
      parser
          .add_option("--real-time", priority,
                      "run loops by SCHED_FIFO with this priority, in locked memory")
          ->check(CLI::Range(1, 99));
  parser.add_flag("--real-time-required", required, "end where the kernel refuses that")
      ->needs(real_time);
  parser.add_option("--takeover", takeover,
                    "take the sockets of an older process over, which serves until then: the path "
                    "where they meet");
  try {
    parser.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(parser.help().c_str(), stdout);
    std::exit(0);
  } catch (const CLI::ParseError& error) {
    refuse(program, error.what());
  }

  // A range takes what is no number.
  if (std::isnan(deadline)) refuse(program, "--deadline: not a number of seconds");

  options.endpoint = endpoint_of(program, address, port);
  options.backend = backends.at(backend);
  options.pin = !no_pin;
  if (!takeover.empty()) options.takeover = HandoverOptions{.path = takeover};
  options.busy_wait = std::chrono::microseconds(busy_wait);
  if (priority != 0) options.real_time = RealTime{.priority = priority, .required = required};
  options.deadline = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(deadline));
  return options;
}

}  // namespace weir
