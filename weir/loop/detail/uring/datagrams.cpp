// Datagram requests of the io_uring backend.
#include "weir/loop/detail/uring/requests.hpp"

#include <poll.h>

#include <cassert>
#include <utility>

#include "weir/loop/detail/readiness/datagram_calls.hpp"

namespace weir::loop::uring {

bool Datagrams::receive(BackendContext& context, ReceiveDatagramsOperation& operation) {
  assert(receiving_ == nullptr);
  operation.pending_on(*this);
  if (may_receive_) {
    const DatagramTryResult tried = try_receive(descriptor, operation, context.counters);
    may_receive_ = tried.may_continue;
    if (tried.finished) return true;
  }
  // An operation that has not tried to receive still has the buffers of its caller.
  for (Datagram& each : operation.target) each.buffer = {};
  receiving_ = &operation;
  arm_receive(context);
  return false;
}

bool Datagrams::send(BackendContext& context, SendDatagramsOperation& operation) {
  assert(sending_ == nullptr);
  operation.pending_on(*this);
  operation.sent = 0;
  if (may_send_ || operation.datagrams.empty()) {
    const DatagramTryResult tried = try_send(descriptor, operation, context.counters);
    may_send_ = tried.may_continue;
    if (tried.finished) return true;
  }
  sending_ = &operation;
  arm_send(context);
  return false;
}

void Datagrams::cancel(BackendContext& context, Operation& operation) {
  // The polls stay armed for the next operation.
  if (&operation == receiving_) {
    receiving_ = nullptr;
  } else if (&operation == sending_) {
    sending_ = nullptr;
  } else {
    return;
  }
  context.finish(operation, Errc::cancelled);
}

void Datagrams::stop(BackendContext& context) {
  assert(receiving_ == nullptr && sending_ == nullptr);
  if (receive_armed_) context.ring.cancel(this, Tag::receive);
  if (send_armed_) context.ring.cancel(this, Tag::send);
}

void Datagrams::arm_receive(BackendContext& context) {
  if (receive_armed_) return;
  io_uring_sqe& entry = context.ring.next();
  io_uring_prep_poll_add(&entry, descriptor, POLLIN);
  context.started(entry, *this, Tag::receive);
  receive_armed_ = true;
}

void Datagrams::arm_send(BackendContext& context) {
  if (send_armed_) return;
  io_uring_sqe& entry = context.ring.next();
  io_uring_prep_poll_add(&entry, descriptor, POLLOUT);
  context.started(entry, *this, Tag::send);
  send_armed_ = true;
}

void Datagrams::completed(BackendContext& context, const Completion& completion) {
  --in_flight;
  if (completion.tag == Tag::receive) {
    receive_armed_ = false;
    if (!closing) receivable(context);
  } else {
    assert(completion.tag == Tag::send);
    send_armed_ = false;
    if (!closing) sendable(context);
  }
}

// The result of the poll does not matter: the call itself reports more.
void Datagrams::receivable(BackendContext& context) {
  may_receive_ = true;
  if (receiving_ == nullptr) return;
  const DatagramTryResult tried = try_receive(descriptor, *receiving_, context.counters);
  may_receive_ = tried.may_continue;
  if (tried.finished) {
    context.ready.push(*std::exchange(receiving_, nullptr));
  } else {
    arm_receive(context);
  }
}

void Datagrams::sendable(BackendContext& context) {
  may_send_ = true;
  if (sending_ == nullptr) return;
  const DatagramTryResult tried = try_send(descriptor, *sending_, context.counters);
  may_send_ = tried.may_continue;
  if (tried.finished) {
    context.ready.push(*std::exchange(sending_, nullptr));
  } else {
    arm_send(context);
  }
}

}  // namespace weir::loop::uring
