// The faults of a World: planned ones and random ones.
#include "weir/sim/faults.hpp"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <set>

#include "weir/base/result.hpp"

namespace weir::sim {

std::string_view to_string(Fault fault) noexcept {
  constexpr std::array<std::string_view, fault_count> names = {
      "reset",      "half-close", "stall",    "full buffer", "accept failure",
      "allocation", "loss",       "doubling", "file failure"};
  return names[static_cast<std::size_t>(fault)];
}

FaultInjector::Trigger FaultInjector::trigger_of(Fault fault) noexcept {
  if (fault == Fault::accept_failure) return Trigger::accept;
  if (fault == Fault::file_failure) return Trigger::file;
  const bool datagram = fault == Fault::loss || fault == Fault::doubling;
  return datagram ? Trigger::datagram : Trigger::operation;
}

std::optional<FaultInjector::Planned> FaultInjector::planned(std::string_view host,
                                                             std::uint64_t number,
                                                             Trigger trigger) {
  const auto found = std::ranges::find_if(planned_, [&](const Planned& each) {
    return each.host == host && each.number == number && trigger_of(each.fault) == trigger;
  });
  if (found == planned_.end()) return std::nullopt;
  const Planned planned = *found;
  planned_.erase(found);
  return planned;
}

std::vector<std::string> FaultInjector::planned_hosts() const {
  std::set<std::string> hosts;
  for (const Planned& each : planned_) hosts.insert(each.host);
  for (const PlannedAllocation& each : allocations_) hosts.insert(each.host);
  return {hosts.begin(), hosts.end()};
}

std::optional<Fault> FaultInjector::at_operation(std::string_view host, std::uint64_t number,
                                                 Random& random) {
  std::optional<Fault> fault;
  if (const auto planned_fault = planned(host, number, Trigger::operation))
    fault = planned_fault->fault;
  if (!fault && random.bernoulli(rates.reset)) fault = Fault::reset;
  if (!fault && random.bernoulli(rates.half_close)) fault = Fault::half_close;
  if (!fault && random.bernoulli(rates.stall)) fault = Fault::stall;
  if (!fault && random.bernoulli(rates.full_buffer)) fault = Fault::full_buffer;
  if (fault) count(*fault);
  return fault;
}

std::optional<std::size_t> FaultInjector::failing_allocation(std::string_view host, unsigned core) {
  const auto found = std::ranges::find_if(allocations_, [&](const PlannedAllocation& each) {
    return each.host == host && each.core == core;
  });
  if (found == allocations_.end()) return std::nullopt;
  const std::size_t number = found->number;
  allocations_.erase(found);
  return number;
}

std::error_code FaultInjector::at_accept(std::string_view host, std::uint64_t number,
                                         Random& random) {
  const auto planned_fault = planned(host, number, Trigger::accept);
  if (!planned_fault && !random.bernoulli(rates.accept_failure)) return {};
  count(Fault::accept_failure);
  if (planned_fault && planned_fault->reason) return planned_fault->reason;
  constexpr std::array reasons = {EMFILE, ENFILE, ENOBUFS, ENOMEM};
  return system_error(reasons[random.below(reasons.size())]);
}

std::optional<Fault> FaultInjector::at_datagram(std::string_view host, std::uint64_t number,
                                                Random& random) {
  std::optional<Fault> fault;
  if (const auto planned_fault = planned(host, number, Trigger::datagram))
    fault = planned_fault->fault;
  if (!fault && random.bernoulli(rates.loss)) fault = Fault::loss;
  if (!fault && random.bernoulli(rates.doubling)) fault = Fault::doubling;
  if (fault) count(*fault);
  return fault;
}

bool FaultInjector::at_file(std::string_view host, std::uint64_t number, Random& random) {
  if (!planned(host, number, Trigger::file) && !random.bernoulli(rates.file_failure)) return false;
  count(Fault::file_failure);
  return true;
}

bool FaultInjector::has_injected(const os::Address& end) const {
  return std::ranges::find(injected_endpoints_, end) != injected_endpoints_.end();
}

std::uint64_t FaultInjector::injected() const noexcept {
  return std::accumulate(injected_.begin(), injected_.end(), std::uint64_t{0});
}

}  // namespace weir::sim
