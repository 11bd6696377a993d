// Plans faults for the run of an HTTP server, and which connections they excuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "weir/http/server/limits.hpp"
#include "weir/http_testing/detail/http_traffic.hpp"
#include "weir/sim/world.hpp"

namespace weir::simulate {

/// Returns what a connection may suffer. It is called after the World has run, for each
/// connection of the host `clients` that broke a rule. See sim::HttpTraffic::find_violation().
using ToleranceFunction = std::function<sim::HttpTolerance(const sim::Host& clients,
                                                           const sim::HttpConnection& connection)>;

/// Plans the faults of a World that has not begun. Its host "server" serves, and "clients 0" and
/// "clients 1" send requests.
using FaultSchedule = std::function<ToleranceFunction(sim::World& world)>;

ToleranceFunction no_faults(sim::World& world);
/// Injects random faults. It excuses the connections with a fault, but not a connection that is
/// only accepted late.
ToleranceFunction random_faults(sim::World& world);
/// Injects one fault at this operation or accept of the server.
FaultSchedule inject_fault(std::uint64_t number, sim::Fault fault);
/// Cuts off the first host of clients in one or both directions, or pauses it, at random times. The
/// function excuses that host.
ToleranceFunction random_partitions(sim::World& world);
/// Tells the server to end, sometimes twice. The function excuses every client that has not
/// finished by then. A response may be incomplete only after the second signal.
ToleranceFunction drain_early(sim::World& world);
/// Tells the server to end `signals` times, after turn `number` (from 0) of any core. `turns`
/// counts the turns.
FaultSchedule drain_at_turn(std::uint64_t number, int signals, std::uint64_t& turns);
/// Fails allocation `number` (from 0) on a core of the server. One connection may suffer once the
/// core serves, and the server continues.
FaultSchedule fail_allocation(unsigned core, std::size_t number);

/// Returns what a server with these limits may do to a connection, without any other fault.
sim::HttpTolerance tolerance_by_limits(const http::Limits& limits,
                                       const sim::HttpConnection& connection);
FaultSchedule tolerate_limits(const http::Limits& limits);

}  // namespace weir::simulate
