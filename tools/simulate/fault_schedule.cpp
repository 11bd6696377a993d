// The kinds of faults, and the connections that each excuses.
#include "tools/simulate/fault_schedule.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"

namespace weir::simulate {
namespace {

sim::HttpTolerance early_close_if(bool tolerated) {
  return tolerated ? sim::HttpTolerance::early_close : sim::HttpTolerance::none;
}

ToleranceFunction tolerate_injected(sim::World& world) {
  return [&faults = world.faults(), connects = std::uint64_t{0}](
             const sim::Host&, const sim::HttpConnection& connection) mutable {
    if (connection.connected && faults.has_injected(connection.local))
      return sim::HttpTolerance::early_close;
    // The schedule does not store which connects got a fault. It has their number, and such a
    // connection has received nothing.
    return early_close_if(connection.received.empty() && ++connects <= faults.injected_connects());
  };
}

/// The times of the two signals: the server drains after the first, and stops after the second.
struct SignalTimes {
  Instant drain = never;
  Instant stop = never;
};

/// Tells the server to end, and stores the time.
void send_terminate(sim::World& world, SignalTimes& times) {
  Instant& time = times.drain == never ? times.drain : times.stop;
  time = std::min(time, world.now());
  world.host("server").raise(loop::Signal::terminate);
}

bool has_failed_to_allocate(const sim::Host& host) {
  if (host.running() == nullptr) return false;
  return std::ranges::any_of(host.running()->cores, [](const sim::Host::Core& core) {
    return core.allocation_fails && !core.loop->blocks().will_fail();
  });
}

ToleranceFunction tolerate_unfinished(std::shared_ptr<SignalTimes> times) {
  return [times = std::move(times)](const sim::Host&, const sim::HttpConnection& connection) {
    if (connection.ended_at >= times->stop) return sim::HttpTolerance::early_close;
    return connection.ended_at >= times->drain ? sim::HttpTolerance::orderly_close
                                               : sim::HttpTolerance::none;
  };
}

}  // namespace

ToleranceFunction no_faults(sim::World&) {
  return [](const sim::Host&, const sim::HttpConnection&) { return sim::HttpTolerance::none; };
}

ToleranceFunction random_faults(sim::World& world) {
  // Some runs have many faults, most have a few.
  const double rate = world.random().bernoulli(0.2) ? 0.05 : 0.005;
  world.faults().rates = {.reset = rate,
                          .half_close = rate,
                          .stall = rate,
                          .full_buffer = rate,
                          .accept_failure = 8 * rate,
                          .stall_max = std::chrono::seconds(10)};
  return tolerate_injected(world);
}

FaultSchedule inject_fault(std::uint64_t number, sim::Fault fault) {
  return [number, fault](sim::World& world) {
    world.faults().inject("server", number, fault);
    return tolerate_injected(world);
  };
}

ToleranceFunction random_partitions(sim::World& world) {
  sim::Host& server = world.host("server");
  sim::Host& client = world.host("clients 0");
  Duration moment{};
  for (int times = 0; times < 3; ++times) {
    moment += world.random().between({}, std::chrono::seconds(1));
    const std::uint64_t kind = world.random().below(4);
    const bool long_one = world.random().bernoulli(0.2);
    const Duration length = world.random().between({}, std::chrono::seconds(long_one ? 60 : 2));
    world.schedule(moment, [&world, &server, &client, kind, length] {
      if (kind == 0) world.partition_one_way(server, client);
      if (kind == 1) world.partition_one_way(client, server);
      if (kind == 2) world.partition(server, client);
      if (kind == 3) world.pause(client, length);
    });
    moment += length;
    world.schedule(moment, [&world, &server, &client] { world.heal(server, client); });
  }
  return [&client](const sim::Host& clients, const sim::HttpConnection&) {
    return early_close_if(&clients == &client);
  };
}

ToleranceFunction drain_early(sim::World& world) {
  const auto times = std::make_shared<SignalTimes>();
  const auto tell = [&world, times] { send_terminate(world, *times); };
  world.schedule(world.random().between({}, std::chrono::milliseconds(2500)), tell);
  if (world.random().bernoulli(0.3)) {
    world.schedule(world.random().between({}, std::chrono::milliseconds(4000)), tell);
  }
  return tolerate_unfinished(times);
}

FaultSchedule drain_at_turn(std::uint64_t number, int signals, std::uint64_t& turns) {
  return [number, signals, &turns](sim::World& world) {
    turns = 0;
    const auto times = std::make_shared<SignalTimes>();
    world.always("signals", [number, signals, &turns, &world, times] {
      for (int left = turns++ == number ? signals : 0; left > 0; --left)
        send_terminate(world, *times);
      return std::string();
    });
    return tolerate_unfinished(times);
  };
}

FaultSchedule fail_allocation(unsigned core, std::size_t number) {
  return [core, number](sim::World& world) {
    world.faults().fail_allocation("server", core, number);
    const auto failed = std::make_shared<Instant>(never);
    world.always("memory", [&world, failed] {
      if (*failed == never && has_failed_to_allocate(world.host("server"))) *failed = world.now();
      return std::string();
    });
    return [&world, failed, suffered = false](const sim::Host&,
                                              const sim::HttpConnection& connection) mutable {
      if (connection.ended_at < *failed) return sim::HttpTolerance::none;
      // The server ends and reports it if a core could not begin.
      if (world.host("server").status() == 1) return sim::HttpTolerance::one_failure;
      return std::exchange(suffered, true) ? sim::HttpTolerance::none
                                           : sim::HttpTolerance::one_failure;
    };
  };
}

sim::HttpTolerance tolerance_by_limits(const http::Limits& limits,
                                       const sim::HttpConnection& connection) {
  const std::vector<sim::HttpResponse> answers = connection.answers();
  if (!answers.empty() && answers.back().complete) {
    const int status = answers.back().status;
    const bool rejected = status == 503 && answers.size() == 1;
    if (rejected || status == 408) return sim::HttpTolerance::early_close;
  }
  // A client that sends so much gets a reset from a server that rejects it.
  if (answers.empty() && connection.text.size() > limits.linger_bytes_max)
    return sim::HttpTolerance::early_close;
  // A full server may close a connection that has been idle for a second.
  const Duration silent = std::min(
      {limits.idle_timeout, limits.first_request_timeout, Duration(std::chrono::seconds(1))});
  return early_close_if(connection.ended_at - connection.started_at >= silent);
}

FaultSchedule tolerate_limits(const http::Limits& limits) {
  return [limits](sim::World&) {
    return [limits](const sim::Host&, const sim::HttpConnection& connection) {
      return tolerance_by_limits(limits, connection);
    };
  };
}

}  // namespace weir::simulate
