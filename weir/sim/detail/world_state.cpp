#include "weir/testing/world_chance.hpp"

#include <array>
#include <cerrno>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir {
namespace {

std::string_view name_of(Operation::Kind kind) noexcept {
  constexpr std::array<std::string_view, 7> names = {
      "receive", "send", "accept", "connect", "file", "receive datagrams", "send datagrams"};
  return names[static_cast<std::size_t>(kind)];
}

std::string text_of(const Operation& operation) {
  std::string text(name_of(operation.kind()));
  if (operation.socket() != nullptr) text += " " + std::to_string(operation.socket()->descriptor);
  return text;
}

}  // namespace

void WorldChance::beginning(const Operation& operation, MemoryStream* stream) {
  if (stream == nullptr) return;
  const std::uint64_t number = operations_++;
  const auto fault = state_.faults.at_operation(host_, number, state_.draw);
  if (!fault) return;
  if (state_.trace.on()) {
    state_.trace.note(std::string(to_string(*fault)) + " before operation " +
                      std::to_string(number) + ", " + text_of(operation));
  }
  strike(*fault, *stream);
}

Instant WorldChance::some_time() {
  return after(state_.clock.now(), state_.draw.between({}, state_.faults.rates.stall_max));
}

void WorldChance::strike(Fault fault, MemoryStream& stream) {
  if (stream.connected()) {
    state_.faults.add_struck(stream.local(), stream.peer_address());
  } else {
    state_.faults.add_struck_connect();
  }
  switch (fault) {
    case Fault::reset:
      stream.reset();
      break;
    case Fault::half_close:
      stream.end_receiving();
      break;
    case Fault::stall:
      stream.hold_until(some_time());
      break;
    case Fault::full_buffer:
      stream.fill_until(state_.clock, some_time());
      break;
    case Fault::accept_failure:  // these strike elsewhere
    case Fault::allocation:
    case Fault::loss:
    case Fault::doubling:
      break;
  }
}

void WorldChance::finished(const Operation& operation, std::size_t bytes) {
  if (!state_.trace.on()) return;
  std::string text = text_of(operation) + ": " + std::to_string(bytes);
  if (operation.error()) text += ", " + operation.error().message();
  state_.trace.note(text);
}

std::size_t WorldChance::part(std::size_t most) {
  if (most <= 1 || !state_.draw.happens(state_.variation.partial)) return most;
  // Half of them are small: where a head or a chunk is cut matters more than by how much.
  constexpr std::size_t small = 16;
  const std::size_t range = state_.draw.happens(0.5) && most > small ? small : most;
  return 1 + state_.draw.below(range);
}

std::error_code WorldChance::accept_failure() {
  const std::error_code reason = state_.faults.at_accept(host_, accepts_++, state_.draw);
  if (reason && state_.trace.on()) state_.trace.note("accept fails: " + reason.message());
  return reason;
}

std::size_t WorldChance::datagram_copies() {
  if (dead_) return 0;
  const std::uint64_t number = datagrams_++;
  const auto fault = state_.faults.at_datagram(host_, number, state_.draw);
  if (!fault) return 1;
  if (state_.trace.on()) {
    state_.trace.note(std::string(to_string(*fault)) + " of datagram " + std::to_string(number));
  }
  return *fault == Fault::loss ? 0 : 2;
}

Duration WorldChance::connect_time() {
  return 2 * state_.draw.between(state_.variation.delay_min, state_.variation.delay_max);
}

std::size_t WorldChance::buffer_bytes(std::size_t usual) {
  const std::size_t least = state_.variation.buffer_bytes_min;
  if (least == 0) return usual;
  while (usual / 2 >= least && state_.draw.happens(0.5)) usual /= 2;
  return usual;
}

}  // namespace weir
