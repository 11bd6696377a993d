// The sending half of a stream on io_uring, and its connect.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <new>
#include <utility>

#include "weir/loop/detail/readiness/stream_calls.hpp"
#include "weir/loop/detail/uring/stream.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::loop::uring {

bool Stream::send(BackendContext& context, SendOperation& operation) {
  assert(output_ == nullptr);
  operation.pending_on(*this);
  operation.sent = 0;
  std::size_t total = 0;
  for (const Bytes piece : operation.pieces) total += piece.size();
  if (total == 0) {
    operation.finish();
    return true;
  }
  if (operation.partial) return send_partially(context, operation);
  output_ = &operation;
  submit_send(context);
  return false;
}

bool Stream::send_partially(BackendContext& context, SendOperation& operation) {
  const SendTryResult tried = try_send(descriptor, operation, context.counters);
  // The caller expects no call of its observer here; the armed receive reports the end, too.
  reset_ = reset_ || is_reset(tried.error);
  operation.finish(tried.error == 0 ? std::error_code() : system_error(tried.error));
  return true;
}

void Stream::submit_send(BackendContext& context) {
  const auto& operation = static_cast<const SendOperation&>(*output_);
  // Further pieces take another request.
  constexpr std::size_t pieces_max = 512;
  std::size_t skip = operation.sent;
  std::size_t first = 0;
  while (skip >= operation.pieces[first].size()) skip -= operation.pieces[first++].size();
  // MSG_MORE: the end of the stream goes into the packet of the last bytes.
  const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (operation.last ? MSG_MORE : 0);
  const std::size_t count = std::min(operation.pieces.size() - first, pieces_max);
  io_uring_sqe& entry = context.ring.next();
  const auto piece_at = [&](std::size_t index) {
    return operation.pieces[first + index].subspan(index == 0 ? skip : 0);
  };
  const std::size_t bytes = sizeof(msghdr) + count * sizeof(iovec);
  void* memory = count == 1 ? nullptr : context.ring.allocate_until_submit(bytes);
  if (memory == nullptr) {  // or no memory; the other pieces then follow one by one
    const Bytes piece = piece_at(0);
    // The length of a request has 32 bits.
    const std::size_t size = std::min<std::size_t>(piece.size(), 1 << 30);
    io_uring_prep_send(&entry, descriptor, piece.data(), size, flags);
  } else {
    auto* header = new (memory) msghdr{};
    auto* vectors = reinterpret_cast<iovec*>(header + 1);
    for (std::size_t index = 0; index < count; ++index) {
      const Bytes piece = piece_at(index);
      new (vectors + index) iovec{const_cast<std::byte*>(piece.data()), piece.size()};
    }
    header->msg_iov = vectors;
    header->msg_iovlen = count;
    io_uring_prep_sendmsg(&entry, descriptor, header, static_cast<unsigned>(flags));
  }
  context.started(entry, *this, Tag::send);
}

void Stream::send_completed(BackendContext& context, int result) {
  if (output_ == nullptr) return;  // the backend is being destroyed
  auto& operation = static_cast<SendOperation&>(*output_);
  std::error_code error;
  if (result >= 0) {
    context.counters.bytes_sent.add(static_cast<std::uint64_t>(result));
    operation.sent += static_cast<std::size_t>(result);
    std::size_t total = 0;
    for (const Bytes piece : operation.pieces) total += piece.size();
    if (operation.sent < total) {
      if (!output_cancelling_) return submit_send(context);
      error = Errc::cancelled;
    }
  } else if (result == -EAGAIN && !output_cancelling_) {
    return wait_until_sendable(context);
  } else if (result == -ECANCELED || result == -EINTR || result == -EAGAIN) {
    if (!output_cancelling_) return submit_send(context);
    error = Errc::cancelled;
  } else {
    error = system_error(-result);
  }
  output_ = nullptr;
  output_cancelling_ = false;
  context.finish(operation, error);
  if (!is_reset(-result)) return;
  reset_ = true;
  if (!dead_) mark_dead(context);
}

/// Arms the poll, or waits for its next report. A report of room that the last send did not see
/// completes after that send.
void Stream::wait_until_sendable(BackendContext& context) {
  send_waits_ = true;
  if (sendable_armed_) return;
  io_uring_sqe& entry = context.ring.next();
  io_uring_prep_poll_multishot(&entry, descriptor, POLLOUT);
  context.started(entry, *this, Tag::sendable);
  sendable_armed_ = true;
}

/// Tries to send. The events do not matter: they can be those of the peer's end only.
void Stream::sendable_completed(BackendContext& context, const Completion& completion) {
  if (!completion.more()) {
    sendable_armed_ = false;
    --in_flight;
  }
  if (closing || !send_waits_) return;
  send_waits_ = false;
  submit_send(context);
}

bool Stream::is_reset(int error) const noexcept {
  return error == ECONNRESET || error == ETIMEDOUT || (error == EPIPE && !finished_);
}

bool Stream::connect(BackendContext& context, ConnectOperation& operation) {
  assert(output_ == nullptr);
  operation.pending_on(*this);
  if (operation.peer.family() == os::AddressFamily::local) {
    // Never pending: it succeeds or fails immediately, and a full queue is a failure. The ring
    // would wait.
    context.counters.system_calls.add();
    const auto connected = os::start_connect(descriptor, operation.peer);
    operation.finish(connected ? std::error_code() : connected.error());
    return true;
  }
  output_ = &operation;
  submit_connect(context);
  return false;
}

void Stream::submit_connect(BackendContext& context) {
  const auto& operation = static_cast<const ConnectOperation&>(*output_);
  io_uring_sqe& entry = context.ring.next();
  io_uring_prep_connect(&entry, descriptor, static_cast<const sockaddr*>(operation.peer.data()),
                        operation.peer.size());
  context.started(entry, *this, Tag::connect);
}

void Stream::connect_completed(BackendContext& context, int result) {
  if (output_ == nullptr) return;  // the backend is being destroyed
  if (result == -EINTR && !output_cancelling_) return submit_connect(context);
  const bool cancelled = output_cancelling_ && (result == -ECANCELED || result == -EINTR);
  Operation& operation = *std::exchange(output_, nullptr);
  output_cancelling_ = false;
  if (cancelled) {
    context.finish(operation, Errc::cancelled);
  } else if (result < 0) {
    context.finish(operation, system_error(-result));
  } else {
    error_ = 0;  // an earlier receive may have failed with ENOTCONN
    if (!receive_armed_) keep_armed(context);
    context.finish(operation);
  }
}

}  // namespace weir::loop::uring
