// Datagram sockets on io_uring: read and written by calls that take many, watched by the ring.
#pragma once

#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/uring_socket.hpp"

namespace weir::uring {

/// A datagram socket. What can be done at once is done at once, by the calls that every backend on
/// the kernel uses (datagram_calls); what must wait has the ring poll the socket, once.
///
/// Not by requests of the ring: each of them moves one datagram, where a call moves dozens, and a
/// receive that stays armed has no limit: a flood would take the buffers that all streams of the
/// core share.
class Datagrams : public SocketState {
 public:
  explicit Datagrams(int value) noexcept : SocketState(value, SocketRole::datagrams) {}

  bool receive(Core& core, ReceiveDatagramsOperation& operation);
  bool send(Core& core, SendDatagramsOperation& operation);
  void cancel(Core& core, Operation& operation);
  /// Ends the armed requests. No operation is pending.
  void stop(Core& core);

  void completed(Core& core, const Completion& completion);

 private:
  void arm_receive(Core& core);
  void arm_send(Core& core);
  void receivable(Core& core);
  void sendable(Core& core);

  bool receive_armed_ = false;
  bool send_armed_ = false;
  bool may_receive_ = true;
  bool may_send_ = true;
  ReceiveDatagramsOperation* receiving_ = nullptr;
  SendDatagramsOperation* sending_ = nullptr;
};

}  // namespace weir::uring
