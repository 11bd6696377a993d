// The sending half of a stream on io_uring, and connecting it.
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <new>
#include <utility>

#include "weir/loop/uring_stream.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::uring {

bool Stream::send(Core& core, SendOperation& operation) {
  assert(output_ == nullptr);
  operation.pending_on(*this);
  operation.sent = 0;
  std::size_t total = 0;
  for (const Bytes piece : operation.pieces) total += piece.size();
  if (total == 0) {
    operation.finish();
    return true;
  }
  output_ = &operation;
  submit_send(core);
  return false;
}

void Stream::submit_send(Core& core) {
  const auto& operation = static_cast<const SendOperation&>(*output_);
  // More pieces than these take another round.
  constexpr std::size_t pieces_max = 512;
  std::size_t skip = operation.sent;
  std::size_t first = 0;
  while (skip >= operation.pieces[first].size()) skip -= operation.pieces[first++].size();
  const std::size_t count = std::min(operation.pieces.size() - first, pieces_max);
  io_uring_sqe& entry = core.ring.next();
  const auto piece_at = [&](std::size_t index) {
    return operation.pieces[first + index].subspan(index == 0 ? skip : 0);
  };
  const std::size_t bytes = sizeof(msghdr) + count * sizeof(iovec);
  void* memory = count == 1 ? nullptr : core.ring.until_submitted(bytes);
  if (memory == nullptr) {  // or there is none; the other pieces then follow one by one
    const Bytes piece = piece_at(0);
    // The length of a request has 32 bits.
    const std::size_t size = std::min<std::size_t>(piece.size(), 1 << 30);
    io_uring_prep_send(&entry, descriptor, piece.data(), size, MSG_NOSIGNAL);
  } else {
    auto* header = new (memory) msghdr{};
    auto* vectors = reinterpret_cast<iovec*>(header + 1);
    for (std::size_t index = 0; index < count; ++index) {
      const Bytes piece = piece_at(index);
      new (vectors + index) iovec{const_cast<std::byte*>(piece.data()), piece.size()};
    }
    header->msg_iov = vectors;
    header->msg_iovlen = count;
    io_uring_prep_sendmsg(&entry, descriptor, header, MSG_NOSIGNAL);
  }
  core.started(entry, *this, Tag::send);
}

void Stream::send_completed(Core& core, int result) {
  if (output_ == nullptr) return;  // the backend is being destroyed
  auto& operation = static_cast<SendOperation&>(*output_);
  std::error_code error;
  if (result >= 0) {
    core.counters.bytes_sent.add(static_cast<std::uint64_t>(result));
    operation.sent += static_cast<std::size_t>(result);
    std::size_t total = 0;
    for (const Bytes piece : operation.pieces) total += piece.size();
    if (operation.sent < total) {
      if (!output_stopping_) return submit_send(core);
      error = Errc::cancelled;
    }
  } else if (result == -ECANCELED || result == -EINTR || result == -EAGAIN) {
    if (!output_stopping_) return submit_send(core);
    error = Errc::cancelled;
  } else {
    error = system_error(-result);
  }
  output_ = nullptr;
  output_stopping_ = false;
  core.finish(operation, error);
  const bool gone =
      result == -ECONNRESET || result == -ETIMEDOUT || (result == -EPIPE && !finished_);
  if (!gone) return;
  reset_ = true;
  if (!dead_) die(core);
}

bool Stream::connect(Core& core, ConnectOperation& operation) {
  assert(output_ == nullptr);
  operation.pending_on(*this);
  if (operation.peer.family() == os::AddressFamily::local) {
    // Never under way: it is refused or done, and a full queue is an answer. The ring would wait.
    core.counters.system_calls.add();
    const auto connected = os::start_connect(descriptor, operation.peer);
    operation.finish(connected ? std::error_code() : connected.error());
    return true;
  }
  output_ = &operation;
  submit_connect(core);
  return false;
}

void Stream::submit_connect(Core& core) {
  const auto& operation = static_cast<const ConnectOperation&>(*output_);
  io_uring_sqe& entry = core.ring.next();
  io_uring_prep_connect(&entry, descriptor, static_cast<const sockaddr*>(operation.peer.data()),
                        operation.peer.size());
  core.started(entry, *this, Tag::connect);
}

void Stream::connect_completed(Core& core, int result) {
  if (output_ == nullptr) return;  // the backend is being destroyed
  if (result == -EINTR && !output_stopping_) return submit_connect(core);
  const bool cancelled = output_stopping_ && (result == -ECANCELED || result == -EINTR);
  Operation& operation = *std::exchange(output_, nullptr);
  output_stopping_ = false;
  if (cancelled) {
    core.finish(operation, Errc::cancelled);
  } else if (result < 0) {
    core.finish(operation, system_error(-result));
  } else {
    error_ = 0;  // an earlier receive may have failed with ENOTCONN
    if (!receive_armed_) keep_armed(core);
    core.finish(operation);
  }
}

}  // namespace weir::uring
