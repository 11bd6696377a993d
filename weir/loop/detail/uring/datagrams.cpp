#include "weir/loop/uring_datagrams.hpp"

#include <poll.h>

#include <cassert>
#include <utility>

#include "weir/loop/datagram_calls.hpp"

namespace weir::uring {

bool Datagrams::receive(Core& core, ReceiveDatagramsOperation& operation) {
  assert(receiving_ == nullptr);
  operation.pending_on(*this);
  if (may_receive_) {
    const DatagramTry tried = try_receive(descriptor, operation, core.counters);
    may_receive_ = tried.again;
    if (tried.finished) return true;
  }
  receiving_ = &operation;
  arm_receive(core);
  return false;
}

bool Datagrams::send(Core& core, SendDatagramsOperation& operation) {
  assert(sending_ == nullptr);
  operation.pending_on(*this);
  operation.sent = 0;
  if (may_send_ || operation.datagrams.empty()) {
    const DatagramTry tried = try_send(descriptor, operation, core.counters);
    may_send_ = tried.again;
    if (tried.finished) return true;
  }
  sending_ = &operation;
  arm_send(core);
  return false;
}

void Datagrams::cancel(Core& core, Operation& operation) {
  // The polls stay: who asks next finds them armed.
  if (&operation == receiving_) {
    receiving_ = nullptr;
  } else if (&operation == sending_) {
    sending_ = nullptr;
  } else {
    return;
  }
  core.finish(operation, Errc::cancelled);
}

void Datagrams::stop(Core& core) {
  assert(receiving_ == nullptr && sending_ == nullptr);
  if (receive_armed_) core.ring.cancel(this, Tag::receive);
  if (send_armed_) core.ring.cancel(this, Tag::send);
}

void Datagrams::arm_receive(Core& core) {
  if (receive_armed_) return;
  io_uring_sqe& entry = core.ring.next();
  io_uring_prep_poll_add(&entry, descriptor, POLLIN);
  core.started(entry, *this, Tag::receive);
  receive_armed_ = true;
}

void Datagrams::arm_send(Core& core) {
  if (send_armed_) return;
  io_uring_sqe& entry = core.ring.next();
  io_uring_prep_poll_add(&entry, descriptor, POLLOUT);
  core.started(entry, *this, Tag::send);
  send_armed_ = true;
}

void Datagrams::completed(Core& core, const Completion& completion) {
  --in_flight;
  if (completion.tag == Tag::receive) {
    receive_armed_ = false;
    if (!closing) receivable(core);
  } else {
    assert(completion.tag == Tag::send);
    send_armed_ = false;
    if (!closing) sendable(core);
  }
}

// Whatever the poll has said: the call knows better.
void Datagrams::receivable(Core& core) {
  may_receive_ = true;
  if (receiving_ == nullptr) return;
  const DatagramTry tried = try_receive(descriptor, *receiving_, core.counters);
  may_receive_ = tried.again;
  if (tried.finished) {
    core.ready.push(*std::exchange(receiving_, nullptr));
  } else {
    arm_receive(core);
  }
}

void Datagrams::sendable(Core& core) {
  may_send_ = true;
  if (sending_ == nullptr) return;
  const DatagramTry tried = try_send(descriptor, *sending_, core.counters);
  may_send_ = tried.again;
  if (tried.finished) {
    core.ready.push(*std::exchange(sending_, nullptr));
  } else {
    arm_send(core);
  }
}

}  // namespace weir::uring
