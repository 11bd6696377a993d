// Runs the whole server in a World. The input decides what the clients send, how it is cut, what
// fails and when. The current client sends text unchanged. The byte 0xff begins a command of
// three bytes: the mark, the command and its argument.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "fuzz/server_model.hpp"
#include "fuzz/server_service.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/peer.hpp"
#include "weir/sim/world.hpp"

namespace {

using namespace weir;
using weir::fuzz::require;

constexpr std::size_t clients_max = 6;
constexpr std::uint8_t command_mark = 0xff;

// The commands of a script.
enum class Command : std::uint8_t {
  connect,        // connects a new client, which becomes the current one
  select_client,  // makes another client the current one
  pass,           // lets time pass
  finish,         // half-closes the connection
  reset,
  close,
  read,    // starts or stops reading
  inject,  // injects a fault into one of the next operations
  fail_accept,
  cut,  // cuts or heals the network
  slow_down,
  jump,
  descriptors,  // leaves few descriptors
  terminate,
};
constexpr std::size_t command_count = 14;

constexpr std::array<Duration, 8> times = {
    std::chrono::microseconds(0),    std::chrono::microseconds(150),
    std::chrono::milliseconds(1),    std::chrono::milliseconds(20),
    std::chrono::milliseconds(300),  std::chrono::milliseconds(1100),
    std::chrono::milliseconds(3500), std::chrono::seconds(30)};
// Every limit has ended all activity within this time, and TCP has retried after a partition.
constexpr Duration drain_time = std::chrono::seconds(300);

/// The options that the first bytes of an input choose.
struct Choices {
  std::uint8_t seed = 0;
  std::uint8_t options = 0;     // bits, as the functions below read them
  std::uint8_t allocation = 0;  // the index of the allocation that fails, with the option
  static constexpr std::size_t size = 3;

  unsigned cores() const { return (options & 1) != 0 ? 2 : 1; }
  bool has_jitter() const { return (options & 2) != 0; }
  bool has_tight_limits() const { return (options & 4) == 0; }
  bool allocation_fails() const { return (options & 24) == 24; }
};

/// A Run is one server, its clients and the script that they follow.
class Run {
 public:
  Run(const Choices& choices, std::string_view script)
      : choices_(choices),
        script_(script),
        world_({.seed = choices.seed,
                .jitter = choices.has_jitter() ? sim::JitterOptions() : sim::no_jitter}),
        server_(world_.host("server", {.cores = choices.cores(), .buffer_bytes = 8192})),
        network_(world_.host("clients", {.buffer_bytes = 8192})) {
    if (choices.has_tight_limits()) limits_ = fuzz::tight_limits();
    if (choices.allocation_fails()) {
      // The first four allocations start the core, which cannot run without them.
      world_.faults().fail_allocation("server", 0, std::size_t{4} + choices.allocation);
    }
  }

  void run() {
    server_.start([this](loop::Platform& platform) { return serve(platform); });
    world_.always("limits", [this] { return broken_limit(); });
    // A core creates its listener in its first turns.
    world_.schedule(std::chrono::milliseconds(200), [this] {
      connect();
      follow();
    });
    const sim::WorldReport report = world_.run_until_done(std::chrono::hours(24));
    for (const std::string& failure : report.failures) check_failure(failure);
    for (const Client& each : clients_) check(each);
  }

 private:
  struct Client {
    explicit Client(MemoryPlatform& platform, const Endpoint& server) : peer(platform, server) {}
    sim::Peer peer;
    Instant safe_until{};  // data sent before this time arrives before any limit may close the
                           // connection
    bool fault_free = true;
  };

  int serve(loop::Platform& platform) {
    http::Router routes;
    fuzz::add_routes(routes);
    return Runtime(platform, {.cores = choices_.cores(), .announce = false})
        .run_on_each_core(fuzz::serve_registered, std::cref(routes), Endpoint::any(80), limits_,
                          std::ref(servers_), http::PlainHttp2::off);
  }

  std::string broken_limit() const {
    std::uint64_t open = 0;
    for (http::ServerState* const each : servers_) {
      const http::ServerCounters& counters = each->counters();
      open += counters.connections_open.value();
      if (counters.responses.value() > counters.requests.value() + clients_max) {
        return "more responses than requests";
      }
    }
    return limits_.connections_max != 0 && open > limits_.connections_max ? "connections" : "";
  }

  void connect() {
    if (clients_.size() < clients_max) {
      current_client_ = clients_.size();
      clients_.emplace_back(network_, server_.address(80));
      client().safe_until = after(world_.now(), std::chrono::milliseconds(500));
    }
  }
  Client& client() { return clients_[current_client_]; }
  void send(std::string_view text) {
    if (world_.now() > client().safe_until) client().fault_free = false;
    client().peer.send(text);
  }

  /// Continues with the script until time has to pass.
  void follow() {
    while (at_ < script_.size()) {
      const std::size_t mark =
          std::min(script_.find(static_cast<char>(command_mark), at_), script_.size());
      send(script_.substr(at_, mark - at_));
      at_ = mark + 3;
      if (at_ > script_.size()) break;
      const auto command =
          static_cast<Command>(static_cast<std::uint8_t>(script_[mark + 1]) % command_count);
      const auto detail = static_cast<std::uint8_t>(script_[mark + 2]);
      if (command == Command::pass) {
        world_.schedule(times[detail % times.size()], [this] { follow(); });
        return;
      }
      execute(command, detail);
    }
    finish();
  }

  void execute(Command command, std::uint8_t detail) {
    switch (command) {
      case Command::connect:
        return connect();
      case Command::select_client:
        current_client_ = detail % clients_.size();
        return;
      case Command::finish:
        return client().peer.finish();
      case Command::reset:
        client().fault_free = false;
        return client().peer.reset();
      case Command::close:
        client().fault_free = false;
        return client().peer.close();
      case Command::read:
        client().fault_free = false;
        return client().peer.set_reading((detail & 1) != 0);
      default:
        fault_free_ = false;
        return apply_fault(command, detail);
    }
  }

  void apply_fault(Command command, std::uint8_t detail) {
    constexpr std::array faults = {sim::Fault::reset, sim::Fault::half_close, sim::Fault::stall};
    const Duration time = times[detail % times.size()];
    switch (command) {
      case Command::inject:
        return world_.faults().inject("server", server_.operations() + detail / faults.size(),
                                      faults[detail % faults.size()]);
      case Command::fail_accept:
        return world_.faults().inject("server", server_.accepts() + detail % 4,
                                      sim::Fault::accept_failure);
      case Command::cut:
        if ((detail & 1) != 0) return world_.partition(server_, network_);
        return world_.heal(server_, network_);
      case Command::slow_down:
        return world_.slow_down(server_, network_, time);
      case Command::jump:
        return world_.jump(time);
      case Command::descriptors:
        return server_.set_descriptors_max(server_.open_descriptors() + detail % 4);
      case Command::terminate:
        terminated_ = true;
        return server_.raise(loop::Signal::terminate);
      default:
        return;
    }
  }

  /// Ends all faults and lets every client read. All connections then end on their own.
  void finish() {
    world_.heal(server_, network_);
    world_.slow_down(server_, network_, {});
    server_.set_descriptors_max(1000);
    world_.faults().stop();
    for (Client& each : clients_) each.peer.set_reading(true);
    world_.schedule(drain_time, [this] { probe(); });
  }

  bool must_serve() const { return !terminated_ && !choices_.allocation_fails(); }

  /// Checks that the server has released everything and still serves.
  void probe() {
    if (must_serve()) {
      std::uint64_t open = 0;
      for (http::ServerState* const each : servers_)
        open += each->counters().connections_open.value();
      require(open == 0);
      require(server_.open_descriptors() == choices_.cores());
      clients_.emplace_back(network_, server_.address(80));
      clients_.back().peer.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    }
    world_.schedule(std::chrono::seconds(40), [this] {
      require(!must_serve() || clients_.back().peer.received().starts_with("HTTP/1.1 200 "));
      server_.raise(loop::Signal::terminate);
    });
  }

  void check_failure(const std::string& failure) const {
    // The failing allocation may hit the service itself.
    if (choices_.allocation_fails() && failure == "server: main returned 1") return;
    std::fprintf(stderr, "server_fuzz: %s\n", failure.c_str());
    require(false);
  }

  void check(const Client& each) const {
    const std::string violation = fuzz::violation_of(
        {.sent = each.peer.outgoing(),
         .received = each.peer.received(),
         .fault_free = fault_free_ && each.fault_free && must_serve() && each.peer.connected()},
        limits_);
    if (violation.empty()) return;
    std::fprintf(stderr, "server_fuzz: %s\nsent:\n%s\nreceived:\n%s\n", violation.c_str(),
                 each.peer.outgoing().c_str(), each.peer.received().c_str());
    require(false);
  }

  Choices choices_;
  std::string_view script_;
  http::Limits limits_;
  sim::World world_;
  sim::Host& server_;
  sim::Host& network_;  // the host of the clients
  fuzz::ActiveServers servers_;
  std::deque<Client> clients_;
  std::size_t current_client_ = 0;
  std::size_t at_ = 0;  // position in the script
  bool fault_free_ = true;
  bool terminated_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::run_script<Choices, Run>(data, size);
}
