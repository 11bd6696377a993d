#include "weir/loop/uring_stream.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>

#include "weir/os/socket.hpp"

namespace weir::uring {

Stream::Stream(int value, std::size_t unread_max) noexcept
    : SocketState(value, SocketRole::stream),
      unread_max_(static_cast<std::uint32_t>(
          std::clamp<std::size_t>(unread_max, 1, std::numeric_limits<std::int32_t>::max()))) {}

bool Stream::receive(Core& core, ReceiveOperation& operation) {
  assert(receiving_ == nullptr);
  operation.pending_on(*this);
  if (!unread_.empty()) {
    take_unread(operation);
    operation.finish();
    if (!receive_armed_ && unread_.held() <= unread_max_ / 2) keep_armed(core);
    return true;
  }
  if (error_ != 0) {
    operation.finish(system_error(error_));
    return true;
  }
  if (ended_) {
    operation.finish(Errc::end_of_stream);
    return true;
  }
  receiving_ = &operation;
  arm_receive(core);
  return false;
}

void Stream::take_unread(ReceiveOperation& operation) noexcept {
  if (operation.target.empty()) {
    operation.buffer = unread_.pop();
    return;
  }
  operation.count = unread_.read(operation.target);
}

void Stream::cancel(Core& core, Operation& operation) {
  if (&operation == receiving_) {
    receiving_ = nullptr;  // what arrives now is queued
    core.finish(operation, Errc::cancelled);
  } else if (&operation == output_ && !output_stopping_) {
    output_stopping_ = true;
    core.ring.cancel(this, operation.kind() == Operation::Kind::send ? Tag::send : Tag::connect);
  }
}

Result<> Stream::shut_down_sending(Core& core) {
  assert(output_ == nullptr);
  core.counters.system_calls.add();
  finished_ = true;
  return os::shut_down_sending(descriptor);
}

void Stream::watch(Core& core, HangupWatcher* watcher) {
  watcher_ = watcher;
  if (watcher == nullptr) return;
  if (dead_) {
    std::exchange(watcher_, nullptr)->hung_up();
    return;
  }
  if (!receive_armed_) keep_armed(core);
}

void Stream::die(Core& core) {
  dead_ = true;
  if (watcher_ == nullptr) return;
  core.told = true;
  std::exchange(watcher_, nullptr)->hung_up();
}

void Stream::stop(Core& core) {
  assert(receiving_ == nullptr && output_ == nullptr);
  watcher_ = nullptr;
  if (receive_armed_ && !receive_stopping_) stop_receive(core);
  if (hangup_armed_) core.ring.cancel(this, Tag::hangup);
}

void Stream::completed(Core& core, const Completion& completion) {
  switch (completion.tag) {
    case Tag::receive:
      return receive_completed(core, completion);
    case Tag::send:
      --in_flight;
      return send_completed(core, completion.result);
    case Tag::connect:
      --in_flight;
      return connect_completed(core, completion.result);
    default:
      assert(completion.tag == Tag::hangup);
      return hangup_completed(core, completion);
  }
}

// Receiving.
// ----------------------------------------------------------------------------------------

bool Stream::wants_more() const noexcept {
  return (receiving_ != nullptr || watcher_ != nullptr) && !ended_ && error_ == 0 &&
         unread_.held() < unread_max_;
}

void Stream::arm_receive(Core& core) {
  if (receive_armed_) return;
  if (!core.buffers.fill()) {
    core.wait_with(*this);
    return;
  }
  io_uring_sqe& entry = core.ring.next();
  io_uring_prep_recv_multishot(&entry, descriptor, nullptr, 0, 0);
  entry.flags |= IOSQE_BUFFER_SELECT;
  entry.buf_group = Buffers::group;
  // 6.17 and newer call this field optlen; on a receive it bounds the sum of all its completions.
  receive_limited_ = core.features.receive_limit;
  if (receive_limited_) entry.file_index = unread_max_;
  core.started(entry, *this, Tag::receive);
  receive_armed_ = true;
  receive_stopping_ = false;
}

void Stream::stop_receive(Core& core) {
  receive_stopping_ = true;
  core.ring.cancel(this, Tag::receive);
}

void Stream::keep_armed(Core& core) {
  if (wants_more()) {
    arm_receive(core);
  } else if (watcher_ != nullptr) {
    arm_hangup(core);
  }
}

void Stream::resume(Core& core) {
  core.wait_no_more(*this);
  if (!closing && !receive_armed_) keep_armed(core);
}

void Stream::receive_completed(Core& core, const Completion& completion) {
  if (!completion.more()) {
    receive_armed_ = false;
    --in_flight;
  }
  const bool has_buffer = (completion.flags & IORING_CQE_F_BUFFER) != 0;
  const auto buffer = static_cast<std::uint16_t>(completion.flags >> IORING_CQE_BUFFER_SHIFT);
  if (completion.result > 0 && has_buffer && !closing) {
    arrived(core, buffer, static_cast<std::size_t>(completion.result));
  } else {
    if (has_buffer) core.buffers.give_back(buffer);
    if (closing) return;
    receive_failed(core, -completion.result);
  }
  if (!receive_armed_) {
    keep_armed(core);
  } else if (!receive_stopping_ && unread_.held() >= unread_max_) {
    stop_receive(core);
  }
}

void Stream::arrived(Core& core, std::uint16_t buffer, std::size_t size) {
  core.counters.bytes_received.add(size);
  if (receiving_ == nullptr) {
    queue(core, buffer, size, 0);
    return;
  }
  ReceiveOperation& operation = *std::exchange(receiving_, nullptr);
  if (operation.target.empty()) {
    operation.buffer = core.buffers.take(buffer, size);
  } else {
    const Bytes bytes = core.buffers.peek(buffer, size);
    operation.count = std::min(size, operation.target.size());
    std::memcpy(operation.target.data(), bytes.data(), operation.count);
    if (operation.count < size) {
      queue(core, buffer, size, operation.count);
    } else {
      core.buffers.give_back(buffer);
    }
  }
  core.finish(operation);
}

// Queues what is behind the first `used` bytes.
void Stream::queue(Core& core, std::uint16_t buffer, std::size_t size, std::size_t used) {
  const bool small = size - used <= Unread::small_max;
  try {
    if (small) {
      unread_.push_copy(core.buffers.peek(buffer, size).subspan(used));
    } else {
      Buffer taken = core.buffers.take(buffer, size);
      taken.consume(used);
      unread_.push(std::move(taken));
    }
  } catch (const std::bad_alloc&) {
    // Bytes are lost, so the stream must not go on as if it were whole.
    receive_failed(core, ENOMEM);
  }
  if (small) core.buffers.give_back(buffer);
}

void Stream::receive_failed(Core& core, int error) {
  switch (error) {
    case 0:
      if (reset_) {
        error = ECONNRESET;
        break;
      }
      ended_ = true;
      if (receiving_ != nullptr)
        core.finish(*std::exchange(receiving_, nullptr), Errc::end_of_stream);
      return;
    case ENOBUFS:    // all buffers were taken in one turn; by the next they are replaced
    case ECANCELED:  // it was asked to stop, or the kernel had no room for completions
    case EAGAIN:
    case EINTR:
      return;
    case EINVAL:
      if (!receive_limited_) break;
      core.features.receive_limit = false;
      return;
    default:
      break;
  }
  error_ = error;
  if (receiving_ != nullptr) core.finish(*std::exchange(receiving_, nullptr), system_error(error));
  if (error != ENOTCONN) die(core);
}

// Watching.
// -----------------------------------------------------------------------------------------

void Stream::arm_hangup(Core& core) {
  if (hangup_armed_ || dead_) return;
  // No events: errors and hang-ups are always reported. So is the end of the peer's sending, once:
  // the poll is edge-triggered and goes on after it.
  io_uring_sqe& entry = core.ring.next();
  io_uring_prep_poll_multishot(&entry, descriptor, 0);
  core.started(entry, *this, Tag::hangup);
  hangup_armed_ = true;
}

void Stream::hangup_completed(Core& core, const Completion& completion) {
  if (!completion.more()) {
    hangup_armed_ = false;
    --in_flight;
  }
  if (closing) return;
  if (completion.result > 0 && (completion.result & (POLLERR | POLLHUP)) != 0) {
    die(core);
  } else if (!hangup_armed_ && !receive_armed_ && completion.result >= 0) {
    keep_armed(core);
  }
}

// Sending and connecting.
// ---------------------------------------------------------------------------

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
