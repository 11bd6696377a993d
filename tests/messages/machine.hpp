// The machines on which a test runs: the kernel with each backend, and the World.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

enum class Machine : std::uint8_t { uring, uring_6_1, epoll, poll, world };

inline constexpr std::array all_machines{Machine::uring, Machine::uring_6_1, Machine::epoll,
                                         Machine::poll, Machine::world};

/// Returns "Uring", "Uring61", "Epoll", "Poll" or "World".
std::string name_of(Machine machine);
/// Returns the reason for which this computer lacks the machine; nullopt if it has it.
std::optional<std::string> lacks(Machine machine);

/// Returns the lines that the program has logged since the last call, except for those about slow
/// turns, which a busy computer causes.
using TakeLines = std::function<std::vector<std::string>()>;

/// Runs `body` on the one core of a runtime. A failure of the runtime or of the World fails the
/// test.
void run_on(Machine machine, const std::function<Task<>(Scope&, const TakeLines&)>& body);

}  // namespace weir::tests::messages
