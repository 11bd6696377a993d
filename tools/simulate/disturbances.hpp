// What goes wrong while an HTTP server is asked, and which connections that excuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "weir/http/limits.hpp"
#include "weir/sim/http/http_traffic.hpp"
#include "weir/sim/world.hpp"

namespace weir::simulate {

/// Asked once the World has been run, for each connection of this host on which something did not
/// hold. See HttpTraffic::find_fault().
using HttpExcuses = std::function<HttpExcuse(const WorldHost& clients, const HttpTalk& talk)>;

/// Plans what goes wrong in a World that has not begun: its host "server" serves, "clients 0" and
/// "clients 1" ask.
using Disturbance = std::function<HttpExcuses(World& world)>;

HttpExcuses nothing(World& world);
/// Faults by chance. Excused are those whose connection is struck; whoever is not accepted at once
/// is not.
HttpExcuses faults_now_and_then(World& world);
/// One fault, at this operation of the server, or at this accept.
Disturbance strike(std::uint64_t number, Fault fault);
/// The first host of clients is cut off, and excused.
HttpExcuses cut_now_and_then(World& world);
/// The server is told to end, perhaps twice. Excused is whoever is not done by then.
HttpExcuses end_early(World& world);
/// The same, so often before the turn of any core that has this number from 0; `turns` counts them.
Disturbance end_at_turn(std::uint64_t number, int signals, std::uint64_t& turns);
/// One allocation of the server fails, with this number from 0 on its core. Once the core serves,
/// one connection may suffer, and the server goes on.
Disturbance fail_allocation(unsigned core, std::size_t number);

/// What a server with these limits, and nothing else, may do to a connection.
HttpExcuse excuse_by_limits(const http::Limits& limits, const HttpTalk& talk);
Disturbance only_limits(const http::Limits& limits);

}  // namespace weir::simulate
