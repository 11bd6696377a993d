#include "weir/sim/faults.hpp"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <set>

#include "weir/base/error.hpp"

namespace weir {

std::string_view to_string(Fault fault) noexcept {
  constexpr std::array<std::string_view, fault_count> names = {
      "reset",          "half-close", "stall", "full buffer",
      "accept failure", "allocation", "loss",  "doubling"};
  return names[static_cast<std::size_t>(fault)];
}

WorldFaults::Place WorldFaults::place_of(Fault fault) noexcept {
  if (fault == Fault::accept_failure) return Place::accept;
  const bool datagram = fault == Fault::loss || fault == Fault::doubling;
  return datagram ? Place::datagram : Place::operation;
}

std::optional<WorldFaults::Planned> WorldFaults::planned(std::string_view host,
                                                         std::uint64_t number, Place place) {
  const auto found = std::ranges::find_if(planned_, [&](const Planned& each) {
    return each.host == host && each.number == number && place_of(each.fault) == place;
  });
  if (found == planned_.end()) return std::nullopt;
  const Planned planned = *found;
  planned_.erase(found);
  return planned;
}

std::vector<std::string> WorldFaults::planned_hosts() const {
  std::set<std::string> hosts;
  for (const Planned& each : planned_) hosts.insert(each.host);
  for (const PlannedAllocation& each : allocations_) hosts.insert(each.host);
  return {hosts.begin(), hosts.end()};
}

std::optional<Fault> WorldFaults::at_operation(std::string_view host, std::uint64_t number,
                                               WorldDraw& draw) {
  std::optional<Fault> fault;
  if (const auto strikes = planned(host, number, Place::operation)) fault = strikes->fault;
  if (!fault && draw.happens(rates.reset)) fault = Fault::reset;
  if (!fault && draw.happens(rates.half_close)) fault = Fault::half_close;
  if (!fault && draw.happens(rates.stall)) fault = Fault::stall;
  if (!fault && draw.happens(rates.full_buffer)) fault = Fault::full_buffer;
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

std::error_code WorldFaults::at_accept(std::string_view host, std::uint64_t number,
                                       WorldDraw& draw) {
  const auto strikes = planned(host, number, Place::accept);
  if (!strikes && !draw.happens(rates.accept_failure)) return {};
  count(Fault::accept_failure);
  if (strikes && strikes->reason) return strikes->reason;
  constexpr std::array reasons = {EMFILE, ENFILE, ENOBUFS, ENOMEM};
  return system_error(reasons[draw.below(reasons.size())]);
}

std::optional<Fault> WorldFaults::at_datagram(std::string_view host, std::uint64_t number,
                                              WorldDraw& draw) {
  std::optional<Fault> fault;
  if (const auto strikes = planned(host, number, Place::datagram)) fault = strikes->fault;
  if (!fault && draw.happens(rates.loss)) fault = Fault::loss;
  if (!fault && draw.happens(rates.doubling)) fault = Fault::doubling;
  if (fault) count(*fault);
  return fault;
}

bool WorldFaults::has_struck(const os::Address& end) const {
  return std::ranges::find(struck_ends_, end) != struck_ends_.end();
}

std::uint64_t WorldFaults::struck() const noexcept {
  return std::accumulate(struck_.begin(), struck_.end(), std::uint64_t{0});
}

}  // namespace weir
