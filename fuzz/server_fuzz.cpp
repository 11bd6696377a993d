// The whole server in a World, driven by bytes: what its clients send, how that is cut, what goes
// wrong and when. Text goes to the connection that is talked on as it stands; 0xff begins an order
// of three bytes: what is done, and with what.
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
#include "weir/sim/world.hpp"
#include "weir/sim/peer.hpp"

namespace {

using namespace weir;
using weir::fuzz::require;

constexpr std::size_t script_bytes_max = 4096;
constexpr std::size_t clients_max = 6;
constexpr std::uint8_t order_mark = 0xff;

// What an order may do.
enum class Order : std::uint8_t {
  connect,  // somebody new, who is talked with from now on
  turn_to,  // another client
  pass,     // time
  finish,   // half-close
  reset,
  close,
  read,    // or do not
  strike,  // a fault at one of the next operations
  fail_accept,
  cut,  // the network, or heal it
  slow_down,
  jump,
  descriptors,  // leave few
  terminate,
};
constexpr std::size_t order_count = 14;

constexpr std::array<Duration, 8> times = {
    std::chrono::microseconds(0),    std::chrono::microseconds(150),
    std::chrono::milliseconds(1),    std::chrono::milliseconds(20),
    std::chrono::milliseconds(300),  std::chrono::milliseconds(1100),
    std::chrono::milliseconds(3500), std::chrono::seconds(30)};
// By then every limit has ended what still went on, and TCP has tried again after a partition.
constexpr Duration patience = std::chrono::seconds(300);

/// What the first bytes of an input choose.
struct Choices {
  std::uint8_t seed = 0;
  std::uint8_t options = 0;     // bits, see below
  std::uint8_t allocation = 0;  // with the option: which one fails
  static constexpr std::size_t size = 3;

  unsigned cores() const { return (options & 1) != 0 ? 2 : 1; }
  bool varied() const { return (options & 2) != 0; }
  bool tight() const { return (options & 4) == 0; }
  bool fails_to_allocate() const { return (options & 24) == 24; }
};

/// One run: a server, its clients and the script that they follow.
class Play {
 public:
  Play(const Choices& choices, std::string_view script)
      : choices_(choices),
        script_(script),
        world_({.seed = choices.seed,
                .variation = choices.varied() ? WorldVariation() : no_variation}),
        server_(world_.host("server", {.cores = choices.cores(), .buffer_bytes = 8192})),
        network_(world_.host("clients", {.buffer_bytes = 8192})) {
    if (choices.tight()) limits_ = fuzz::tight_limits();
    if (choices.fails_to_allocate()) {
      // Before that, the core itself begins, and cannot do without.
      world_.faults().fail_allocation("server", 0, std::size_t{4} + choices.allocation);
    }
  }

  void run() {
    server_.start([this](Host& host) { return serve(host); });
    world_.always("limits", [this] { return broken_limit(); });
    // A core's first turns make its listener.
    world_.at(std::chrono::milliseconds(200), [this] {
      connect();
      follow();
    });
    const WorldReport report = world_.run_until_done(std::chrono::hours(24));
    for (const std::string& failure : report.failures) check_failure(failure);
    for (const Client& each : clients_) check(each);
  }

 private:
  struct Client {
    explicit Client(MemoryHost& host, const Endpoint& server) : peer(host, server) {}
    WorldPeer peer;
    Instant patient_until{};  // what it sends by then comes before any limit may close it
    bool undisturbed = true;
  };

  int serve(Host& host) {
    http::Router routes;
    fuzz::add_routes(routes);
    return Runtime(host, {.cores = choices_.cores(), .announce = false})
        .run_on_each_core(fuzz::serve_seen, std::cref(routes), Endpoint::any(80), limits_,
                          std::ref(servers_));
  }

  std::string broken_limit() const {
    std::uint64_t open = 0;
    for (http::ServerCore* const each : servers_) {
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
      talking_ = clients_.size();
      clients_.emplace_back(network_, server_.address(80));
      client().patient_until = after(world_.now(), std::chrono::milliseconds(500));
    }
  }
  Client& client() { return clients_[talking_]; }
  void send(std::string_view text) {
    if (world_.now() > client().patient_until) client().undisturbed = false;
    client().peer.send(text);
  }

  /// Goes on with the script until time has to pass.
  void follow() {
    while (at_ < script_.size()) {
      const std::size_t mark =
          std::min(script_.find(static_cast<char>(order_mark), at_), script_.size());
      send(script_.substr(at_, mark - at_));
      at_ = mark + 3;
      if (at_ > script_.size()) break;
      const auto order =
          static_cast<Order>(static_cast<std::uint8_t>(script_[mark + 1]) % order_count);
      const auto detail = static_cast<std::uint8_t>(script_[mark + 2]);
      if (order == Order::pass) {
        world_.at(times[detail % times.size()], [this] { follow(); });
        return;
      }
      obey(order, detail);
    }
    finish();
  }

  void obey(Order order, std::uint8_t detail) {
    switch (order) {
      case Order::connect:
        return connect();
      case Order::turn_to:
        talking_ = detail % clients_.size();
        return;
      case Order::finish:
        return client().peer.finish();
      case Order::reset:
        client().undisturbed = false;
        return client().peer.reset();
      case Order::close:
        client().undisturbed = false;
        return client().peer.close();
      case Order::read:
        client().undisturbed = false;
        return client().peer.set_reading((detail & 1) != 0);
      default:
        undisturbed_ = false;
        return go_wrong(order, detail);
    }
  }

  void go_wrong(Order order, std::uint8_t detail) {
    constexpr std::array faults = {Fault::reset, Fault::half_close, Fault::stall};
    const Duration time = times[detail % times.size()];
    switch (order) {
      case Order::strike:
        return world_.faults().strike("server", server_.operations() + detail / faults.size(),
                                      faults[detail % faults.size()]);
      case Order::fail_accept:
        return world_.faults().strike("server", server_.accepts() + detail % 4,
                                      Fault::accept_failure);
      case Order::cut:
        if ((detail & 1) != 0) return world_.cut(server_, network_);
        return world_.heal(server_, network_);
      case Order::slow_down:
        return world_.slow_down(server_, network_, time);
      case Order::jump:
        return world_.jump(time);
      case Order::descriptors:
        return server_.set_descriptors_max(server_.open_descriptors() + detail % 4);
      case Order::terminate:
        terminated_ = true;
        return server_.raise(Signal::terminate);
      default:
        return;
    }
  }

  /// Nothing more goes wrong, and everybody reads: then all comes to its end by itself.
  void finish() {
    world_.heal(server_, network_);
    world_.slow_down(server_, network_, {});
    server_.set_descriptors_max(1000);
    world_.faults().stop();
    for (Client& each : clients_) each.peer.set_reading(true);
    world_.at(patience, [this] { probe(); });
  }

  bool must_serve() const { return !terminated_ && !choices_.fails_to_allocate(); }

  /// Whatever has been done to it, the server has forgotten that, and serves.
  void probe() {
    if (must_serve()) {
      std::uint64_t open = 0;
      for (http::ServerCore* const each : servers_)
        open += each->counters().connections_open.value();
      require(open == 0);
      require(server_.open_descriptors() == choices_.cores());
      clients_.emplace_back(network_, server_.address(80));
      clients_.back().peer.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    }
    world_.at(std::chrono::seconds(40), [this] {
      require(!must_serve() || clients_.back().peer.received().starts_with("HTTP/1.1 200 "));
      server_.raise(Signal::terminate);
    });
  }

  void check_failure(const std::string& failure) const {
    // What the failing allocation hits may be the service itself.
    if (choices_.fails_to_allocate() && failure == "server: main has returned 1") return;
    std::fprintf(stderr, "server_fuzz: %s\n", failure.c_str());
    require(false);
  }

  void check(const Client& each) const {
    const std::string fault = fuzz::fault_of(
        {.sent = each.peer.asked(),
         .received = each.peer.received(),
         .undisturbed = undisturbed_ && each.undisturbed && must_serve() && each.peer.connected()},
        limits_);
    if (fault.empty()) return;
    std::fprintf(stderr, "server_fuzz: %s\nsent:\n%s\nreceived:\n%s\n", fault.c_str(),
                 each.peer.asked().c_str(), each.peer.received().c_str());
    require(false);
  }

  Choices choices_;
  std::string_view script_;
  http::Limits limits_;
  World world_;
  WorldHost& server_;
  WorldHost& network_;  // where the clients are
  fuzz::ServersNow servers_;
  std::deque<Client> clients_;
  std::size_t talking_ = 0;
  std::size_t at_ = 0;  // in the script
  bool undisturbed_ = true;
  bool terminated_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < Choices::size) return 0;
  const Choices choices{data[0], data[1], data[2]};
  std::string_view script(reinterpret_cast<const char*>(data), std::min(size, script_bytes_max));
  script.remove_prefix(Choices::size);
  Play(choices, script).run();
  return 0;
}
