#include "weir/testing/world_faults.hpp"

#include <algorithm>

namespace weir {

std::string_view to_string(Fault fault) noexcept {
  constexpr std::array<std::string_view, fault_count> names = {"reset", "half-close", "stall",
                                                               "accept failure", "allocation"};
  return names[static_cast<std::size_t>(fault)];
}

std::optional<Fault> WorldFaults::planned(std::string_view host, std::uint64_t number,
                                          bool accepting) {
  const auto found = std::ranges::find_if(planned_, [&](const Planned& each) {
    return each.host == host && each.number == number &&
           (each.fault == Fault::accept_failure) == accepting;
  });
  if (found == planned_.end()) return std::nullopt;
  const Fault fault = found->fault;
  planned_.erase(found);
  return fault;
}

std::optional<Fault> WorldFaults::at_operation(std::string_view host, std::uint64_t number,
                                               WorldDraw& draw) {
  std::optional<Fault> fault = planned(host, number, false);
  if (!fault && draw.happens(rates.reset)) fault = Fault::reset;
  if (!fault && draw.happens(rates.half_close)) fault = Fault::half_close;
  if (!fault && draw.happens(rates.stall)) fault = Fault::stall;
  if (fault) count(*fault);
  return fault;
}

std::optional<std::size_t> WorldFaults::failing_allocation(std::string_view host, unsigned core) {
  const auto found = std::ranges::find_if(allocations_, [&](const PlannedAllocation& each) {
    return each.host == host && each.core == core;
  });
  if (found == allocations_.end()) return std::nullopt;
  const std::size_t number = found->number;
  allocations_.erase(found);
  return number;
}

bool WorldFaults::at_accept(std::string_view host, std::uint64_t number, WorldDraw& draw) {
  const bool strikes = planned(host, number, true) || draw.happens(rates.accept_failure);
  if (strikes) count(Fault::accept_failure);
  return strikes;
}

}  // namespace weir
