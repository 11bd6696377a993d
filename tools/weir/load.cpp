// Counts, sums and shares of a load.
#include "tools/weir/load.hpp"

#include <algorithm>

namespace weir::bench {

std::string_view name_of(LoadError fault) noexcept {
  switch (fault) {
    case LoadError::refused:
      return "connection refused";
    case LoadError::not_connected:
      return "could not connect";
    case LoadError::timed_out:
      return "timed out";
    case LoadError::reset:
      return "connection broken";
    case LoadError::ended:
      return "closed before the answer";
    case LoadError::not_closed:
      return "not closed after the answer";
    case LoadError::handshake:
      return "TLS handshake failed";
  }
  return "unknown";
}

void ErrorCounts::count(LoadError fault, std::string_view detail) {
  count(static_cast<std::size_t>(fault), detail);
}

void ErrorCounts::count(ResponseError fault, std::string_view detail) {
  count(load_error_count + static_cast<std::size_t>(fault), detail);
}

void ErrorCounts::count(std::size_t index, std::string_view detail) {
  Kind& kind = kinds_[index];
  if (kind.count++ == 0) kind.first = detail;
}

void ErrorCounts::add(const ErrorCounts& other) {
  for (std::size_t index = 0; index < kinds_.size(); ++index) {
    const Kind& theirs = other.kinds_[index];
    if (kinds_[index].count == 0) kinds_[index].first = theirs.first;
    kinds_[index].count += theirs.count;
  }
}

std::uint64_t ErrorCounts::total() const noexcept {
  std::uint64_t total = 0;
  for (const Kind& kind : kinds_) total += kind.count;
  return total;
}

std::uint64_t ErrorCounts::of(LoadError fault) const noexcept {
  return kinds_[static_cast<std::size_t>(fault)].count;
}

std::uint64_t ErrorCounts::of(ResponseError fault) const noexcept {
  return kinds_[load_error_count + static_cast<std::size_t>(fault)].count;
}

std::string_view ErrorCounts::name_of_kind(std::size_t index) noexcept {
  return index < load_error_count ? name_of(static_cast<LoadError>(index))
                                  : name_of(static_cast<ResponseError>(index - load_error_count));
}

void ErrorCounts::visit(
    const std::function<void(std::string_view, std::uint64_t, std::string_view)>& visit) const {
  for (std::size_t index = 0; index < kinds_.size(); ++index) {
    const Kind& kind = kinds_[index];
    if (kind.count != 0) visit(name_of_kind(index), kind.count, kind.first);
  }
}

void LoadResult::add(const LoadResult& other) {
  responses += other.responses;
  late += other.late;
  unanswered += other.unanswered;
  abandoned += other.abandoned;
  starved += other.starved;
  unsent += other.unsent;
  connections += other.connections;
  handshakes += other.handshakes;
  resumed += other.resumed;
  closed_by_server += other.closed_by_server;
  bytes_received += other.bytes_received;
  errors.add(other.errors);
  if (body && other.body && (*body != *other.body || body_bytes != other.body_bytes)) {
    errors.count(ResponseError::body, "two threads got different bodies");
  }
  if (!body) body = other.body;
  body_bytes = std::max(body_bytes, other.body_bytes);
  length = std::max(length, other.length);
  per_second += other.per_second;
  if (!server_cpu_time) server_cpu_time = other.server_cpu_time;
  latency.add(other.latency);
  if (backend.empty()) backend = other.backend;
}

LoadPlan share_of(const LoadPlan& plan, unsigned thread, unsigned threads) {
  const auto part = [&](std::uint64_t whole) {
    return whole / threads + (thread < whole % threads ? 1 : 0);
  };
  LoadPlan share = plan;
  share.connections = static_cast<unsigned>(part(plan.connections));
  share.first_connection_index = thread * (plan.connections / threads + 1);
  if (plan.requests) share.requests = part(*plan.requests);
  share.rate = plan.rate * share.connections / plan.connections;
  if (thread != 0) share.server_cpu_time = nullptr;
  return share;
}

}  // namespace weir::bench
