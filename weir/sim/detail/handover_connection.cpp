// Messages between the processes of one simulated machine.
#include "weir/sim/detail/handover_connection.hpp"

#include <cerrno>
#include <utility>

#include "weir/sim/detail/handover_endpoint.hpp"
#include "weir/sim/host.hpp"

namespace weir::sim {

bool SimPipe::send(Side from, Message queued) {
  End& to = at(other(from));
  if (at(from).closed || to.closed || to.closed_for_reading) return false;
  to.messages.push_back(std::move(queued));
  if (to.endpoint != nullptr) to.endpoint->wake();
  return true;
}

std::optional<SimPipe::Message> SimPipe::receive(Side side) {
  std::deque<Message>& messages = at(side).messages;
  if (messages.empty()) return std::nullopt;
  std::optional<Message> first = std::move(messages.front());
  messages.pop_front();
  return first;
}

void SimPipe::leave(Side side) {
  End& own = at(side);
  own.endpoint = nullptr;
  own.messages.clear();  // closes the sockets in them too
  if (std::exchange(own.closed, true)) return;
  if (SimHandoverEndpoint* const endpoint = at(other(side)).endpoint; endpoint != nullptr)
    endpoint->wake();
}

SimHandoverConnection::SimHandoverConnection(SimHandoverEndpoint& endpoint,
                                             std::shared_ptr<SimPipe> pipe, SimPipe::Side side)
    : endpoint_(endpoint), pipe_(std::move(pipe)), side_(side) {
  pipe_->join(side_, endpoint_);
  endpoint_.add(*this);
}

SimHandoverConnection::~SimHandoverConnection() {
  leave();
  endpoint_.remove(*this);
}

loop::HandoverConnection::ReceiveResult SimHandoverConnection::receive(Instant until) {
  for (;;) {
    endpoint_.start_step();
    if (endpoint_.take_notification()) return ReceiveResult::interrupted;
    if (auto queued = pipe_->receive(side_)) return open(std::move(*queued));
    if (pipe_->ended(side_)) return ReceiveResult::closed;
    if (endpoint_.host().now() >= until) return ReceiveResult::timed_out;
    endpoint_.wait_for_wake(until);
  }
}

/// Returns `invalid`, as with packets, if a descriptor of the message has no room. The message is
/// lost then, and all its sockets are closed.
loop::HandoverConnection::ReceiveResult SimHandoverConnection::open(SimPipe::Message queued) {
  sockets_.clear();
  for (std::shared_ptr<MemoryEndpoint>& each : queued.sockets) {
    const auto number = endpoint_.host().descriptors().add(std::move(each));
    if (!number) {
      sockets_.clear();
      return ReceiveResult::invalid;
    }
    sockets_.emplace_back(endpoint_.host(), *number);
  }
  message_ = std::move(queued.message);
  return ReceiveResult::message;
}

Result<> SimHandoverConnection::do_send(const loop::HandoverMessage& message,
                                        std::span<const int> sockets) {
  endpoint_.start_step();
  if (endpoint_.dead()) return fail(system_error(EPIPE));
  SimPipe::Message queued{message};
  for (const int each : sockets)
    queued.sockets.push_back(endpoint_.host().descriptors().share(each));
  if (!pipe_->send(side_, std::move(queued))) return fail(system_error(EPIPE));
  return {};
}

}  // namespace weir::sim
