#include "weir/loop/uring_stream.hpp"

#include <poll.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "weir/os/detail/io/socket.hpp"

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
  if (receive_armed_) core.ring.cancel(this, Tag::receive);
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

// --- receiving -----------------------------------------------------------------------------------

bool Stream::wants_more() const noexcept {
  return (receiving_ != nullptr || watcher_ != nullptr) && !ended_ && error_ == 0 &&
         unread_.held() < unread_max_;
}

void Stream::arm_receive(Core& core) {
  if (receive_armed_ || starved_) return;
  if (!core.buffers.fill()) {
    doubted_ = false;
    core.wait_with(*this);
    return;
  }
  io_uring_sqe& entry = core.ring.next();
  multishot_ = core.features.limited_multishot && began_;
  if (multishot_) {
    io_uring_prep_recv_multishot(&entry, descriptor, nullptr, 0, 0);
    // 6.17 and newer call this field optlen: it bounds the sum of all completions.
    entry.file_index = unread_max_ - static_cast<std::uint32_t>(unread_.held());
  } else {
    io_uring_prep_recv(&entry, descriptor, nullptr, 0, 0);
  }
  entry.flags |= IOSQE_BUFFER_SELECT;
  entry.buf_group = Buffers::group;
  core.started(entry, *this, Tag::receive);
  receive_armed_ = true;
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
  starved_ = false;
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
    if (receive_armed_ && !hangup_armed_ && !doubted_) {
      doubted_ = true;
      core.doubt(*this);
    }
  } else {
    if (has_buffer) core.buffers.give_back(buffer);
    if (closing) return;
    receive_failed(core, -completion.result);
  }
  if (!receive_armed_) keep_armed(core);
}

void Stream::arrived(Core& core, std::uint16_t buffer, std::size_t size) {
  began_ = true;
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
    case ENOBUFS:
      if (wants_more()) {
        doubted_ = false;
        starved_ = true;
        core.starve(*this);
      }
      return;
    case ECANCELED:  // the kernel had no room for completions, or a poll has seen the end first
    case EAGAIN:
    case EINTR:
      return;
    case EINVAL:
      if (!multishot_) break;
      core.features.limited_multishot = false;
      return;
    default:
      break;
  }
  error_ = static_cast<std::int16_t>(error);
  if (receiving_ != nullptr) core.finish(*std::exchange(receiving_, nullptr), system_error(error));
  if (error != ENOTCONN) die(core);
}

// --- watching ------------------------------------------------------------------------------------

void Stream::check(Core& core) {
  doubted_ = false;
  core.wait_no_more(*this);
  if (!closing && receive_armed_) arm_hangup(core);
}

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
  const int events = std::max(completion.result, 0);
  // It may have missed that; it is armed again when it has ended, and then sees it at once.
  const bool receive_may_be_deaf =
      receive_armed_ && (events & (POLLERR | POLLHUP | POLLRDHUP)) != 0;
  if (receive_may_be_deaf) core.ring.cancel(this, Tag::receive);
  if ((events & (POLLERR | POLLHUP)) != 0) {
    die(core);
  } else if (!hangup_armed_ && !receive_armed_ && completion.result >= 0) {
    keep_armed(core);
  }
}

}  // namespace weir::uring
