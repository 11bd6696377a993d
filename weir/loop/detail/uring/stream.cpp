// The receiving half of a stream on io_uring, its hang-up detection, and its receive queue.
#include "weir/loop/detail/uring/stream.hpp"

#include <poll.h>
#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "weir/os/detail/io/socket.hpp"

namespace weir::loop::uring {

Stream::Stream(int value, std::size_t unread_max) noexcept
    : SocketState(value, SocketRole::stream),
      unread_max_(static_cast<std::uint32_t>(
          std::clamp<std::size_t>(unread_max, 1, std::numeric_limits<std::int32_t>::max()))) {}

bool Stream::receive(BackendContext& context, ReceiveOperation& operation) {
  assert(receiving_ == nullptr);
  operation.pending_on(*this);
  if (!receive_queue_.empty()) {
    take_unread(operation);
    operation.finish();
    if (!receive_armed_ && receive_queue_.memory_used() <= unread_max_ / 2) keep_armed(context);
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
  arm_receive(context);
  return false;
}

void Stream::take_unread(ReceiveOperation& operation) noexcept {
  if (operation.target.empty()) {
    operation.buffer = receive_queue_.pop();
    return;
  }
  operation.count = receive_queue_.read(operation.target);
}

void Stream::cancel(BackendContext& context, Operation& operation) {
  if (&operation == receiving_) {
    receiving_ = nullptr;  // bytes that arrive now are queued
    context.finish(operation, Errc::cancelled);
  } else if (&operation == output_ && send_waits_) {
    send_waits_ = false;
    output_ = nullptr;
    context.finish(operation, Errc::cancelled);
  } else if (&operation == output_ && !output_cancelling_) {
    output_cancelling_ = true;
    // A send ends as soon as the kernel has it.
    if (operation.kind() == Operation::Kind::connect) context.ring.cancel(this, Tag::connect);
  }
}

Result<> Stream::shut_down_sending(BackendContext& context) {
  assert(output_ == nullptr);
  context.counters.system_calls.add();
  finished_ = true;
  return os::shut_down_sending(descriptor);
}

void Stream::observe_hangup(BackendContext& context, HangupObserver* observer) {
  observer_ = observer;
  if (observer == nullptr) return;
  const bool input = !receive_queue_.empty() || ended_ || error_ != 0;
  if (dead_ || (input && observer->observes_input())) {
    std::exchange(observer_, nullptr)->on_hangup();
    return;
  }
  if (!receive_armed_) keep_armed(context);
}

/// Reports input that no receive takes to an observer of input.
void Stream::report_input(BackendContext& context) {
  if (observer_ == nullptr || !observer_->observes_input()) return;
  context.notified = true;
  std::exchange(observer_, nullptr)->on_hangup();
}

void Stream::mark_dead(BackendContext& context) {
  dead_ = true;
  if (observer_ == nullptr) return;
  context.notified = true;
  std::exchange(observer_, nullptr)->on_hangup();
}

void Stream::stop(BackendContext& context) {
  assert(receiving_ == nullptr && output_ == nullptr);
  observer_ = nullptr;
  if (receive_armed_) context.ring.cancel(this, Tag::receive);
  if (hangup_armed_) context.ring.cancel(this, Tag::hangup);
  if (sendable_armed_) context.ring.cancel(this, Tag::sendable);
}

void Stream::completed(BackendContext& context, const Completion& completion) {
  switch (completion.tag) {
    case Tag::receive:
      return receive_completed(context, completion);
    case Tag::send:
      --in_flight;
      return send_completed(context, completion.result);
    case Tag::sendable:
      return sendable_completed(context, completion);
    case Tag::connect:
      --in_flight;
      return connect_completed(context, completion.result);
    default:
      assert(completion.tag == Tag::hangup);
      return hangup_completed(context, completion);
  }
}

// --- receiving -----------------------------------------------------------------------------------

bool Stream::should_receive() const noexcept {
  return (receiving_ != nullptr || observer_ != nullptr) && !ended_ && error_ == 0 &&
         receive_queue_.memory_used() < unread_max_;
}

void Stream::arm_receive(BackendContext& context) {
  if (receive_armed_ || waiting_for_buffer_) return;
  if (!context.buffers.fill()) {
    hangup_unconfirmed_ = false;
    context.add_waiting(*this);
    return;
  }
  io_uring_sqe& entry = context.ring.next();
  multishot_ = context.features.limited_multishot && arrivals_ == single_receives;
  if (multishot_) {
    io_uring_prep_recv_multishot(&entry, descriptor, nullptr, 0, 0);
    // 6.17 and newer call this field optlen: it limits the sum of all completions.
    entry.file_index = unread_max_ - static_cast<std::uint32_t>(receive_queue_.memory_used());
  } else {
    io_uring_prep_recv(&entry, descriptor, nullptr, 0, 0);
  }
  entry.flags |= IOSQE_BUFFER_SELECT;
  entry.buf_group = Buffers::group;
  context.started(entry, *this, Tag::receive);
  receive_armed_ = true;
}

void Stream::keep_armed(BackendContext& context) {
  if (should_receive()) {
    arm_receive(context);
  } else if (observer_ != nullptr) {
    arm_hangup(context);
  }
}

void Stream::resume(BackendContext& context) {
  context.remove_waiting(*this);
  waiting_for_buffer_ = false;
  if (!closing && !receive_armed_) keep_armed(context);
}

void Stream::receive_completed(BackendContext& context, const Completion& completion) {
  if (!completion.more()) {
    receive_armed_ = false;
    --in_flight;
  }
  const bool has_buffer = (completion.flags & IORING_CQE_F_BUFFER) != 0;
  const auto buffer = static_cast<std::uint16_t>(completion.flags >> IORING_CQE_BUFFER_SHIFT);
  if (completion.result > 0 && has_buffer && !closing) {
    arrived(context, buffer, static_cast<std::size_t>(completion.result));
    if (receive_armed_ && !hangup_armed_ && !hangup_unconfirmed_) {
      hangup_unconfirmed_ = true;
      context.schedule_hangup_check(*this);
    }
  } else {
    if (has_buffer) context.buffers.give_back(buffer);
    if (closing) return;
    receive_failed(context, -completion.result);
  }
  if (!receive_armed_) keep_armed(context);
}

void Stream::arrived(BackendContext& context, std::uint16_t buffer, std::size_t size) {
  if (arrivals_ < single_receives) ++arrivals_;
  context.counters.bytes_received.add(size);
  if (receiving_ == nullptr) {
    queue(context, buffer, size, 0);
    report_input(context);
    return;
  }
  ReceiveOperation& operation = *std::exchange(receiving_, nullptr);
  if (operation.target.empty()) {
    operation.buffer = context.buffers.take(buffer, size);
  } else {
    const Bytes bytes = context.buffers.peek(buffer, size);
    operation.count = std::min(size, operation.target.size());
    std::memcpy(operation.target.data(), bytes.data(), operation.count);
    if (operation.count < size) {
      queue(context, buffer, size, operation.count);
    } else {
      context.buffers.give_back(buffer);
    }
  }
  context.finish(operation);
}

// Queues the bytes after the first `used` bytes.
void Stream::queue(BackendContext& context, std::uint16_t buffer, std::size_t size,
                   std::size_t used) {
  const bool small = size - used <= ReceiveQueue::small_max;
  try {
    if (small) {
      receive_queue_.push_copy(context.buffers.peek(buffer, size).subspan(used));
    } else {
      Buffer taken = context.buffers.take(buffer, size);
      taken.consume(used);
      receive_queue_.push(std::move(taken));
    }
  } catch (const std::bad_alloc&) {
    // Bytes are lost, so the stream must not continue as if it were complete.
    receive_failed(context, ENOMEM);
  }
  if (small) context.buffers.give_back(buffer);
}

void Stream::receive_failed(BackendContext& context, int error) {
  switch (error) {
    case 0:
      if (reset_) {
        error = ECONNRESET;
        break;
      }
      ended_ = true;
      if (receiving_ != nullptr) {
        context.finish(*std::exchange(receiving_, nullptr), Errc::end_of_stream);
      } else {
        report_input(context);
      }
      return;
    case ENOBUFS:
      if (should_receive()) {
        hangup_unconfirmed_ = false;
        waiting_for_buffer_ = true;
        context.wait_for_buffer(*this);
      }
      return;
    case ECANCELED:  // the kernel had no room for completions, or a poll has seen the end
    case EAGAIN:
    case EINTR:
      return;
    case EINVAL:
      if (!multishot_) break;
      context.features.limited_multishot = false;
      return;
    default:
      break;
  }
  error_ = static_cast<std::int16_t>(error);
  if (receiving_ != nullptr)
    context.finish(*std::exchange(receiving_, nullptr), system_error(error));
  if (error != ENOTCONN) mark_dead(context);
}

// --- watching ------------------------------------------------------------------------------------

void Stream::check_hangup(BackendContext& context) {
  hangup_unconfirmed_ = false;
  context.remove_waiting(*this);
  if (!closing && receive_armed_) arm_hangup(context);
}

void Stream::arm_hangup(BackendContext& context) {
  if (hangup_armed_ || dead_) return;
  // No events: errors and hang-ups are always reported. The end of the peer's sending is reported
  // too, once: the poll is edge-triggered and stays armed.
  io_uring_sqe& entry = context.ring.next();
  io_uring_prep_poll_multishot(&entry, descriptor, 0);
  context.started(entry, *this, Tag::hangup);
  hangup_armed_ = true;
}

void Stream::hangup_completed(BackendContext& context, const Completion& completion) {
  if (!completion.more()) {
    hangup_armed_ = false;
    --in_flight;
  }
  if (closing) return;
  const int events = std::max(completion.result, 0);
  // The receive may have missed the end. It is armed again after its cancellation, and then sees
  // the end immediately.
  const bool receive_may_miss_end =
      receive_armed_ && (events & (POLLERR | POLLHUP | POLLRDHUP)) != 0;
  if (receive_may_miss_end) context.ring.cancel(this, Tag::receive);
  if ((events & (POLLERR | POLLHUP)) != 0) {
    mark_dead(context);
  } else if (!hangup_armed_ && !receive_armed_ && completion.result >= 0) {
    keep_armed(context);
  }
}

namespace {

// Capacity of the first copy, so that the following small arrivals fit behind it.
constexpr std::size_t small_capacity = 1024;

void append(Buffer& buffer, Bytes bytes) noexcept {
  std::memcpy(buffer.room().data(), bytes.data(), bytes.size());
  buffer.commit(bytes.size());
}

}  // namespace

ReceiveQueue::~ReceiveQueue() {
  while (!empty()) pop();
}

void ReceiveQueue::push(Buffer buffer) {
  const std::size_t memory = memory_used() + buffer.capacity();
  Chunk* chunk = make_block<Chunk>(std::move(buffer)).release();
  chunk->next = empty() ? chunk : std::exchange(last_->next, chunk);
  chunk->memory_used = memory;
  last_ = chunk;
}

void ReceiveQueue::push_copy(Bytes bytes) {
  assert(bytes.size() <= small_max);
  if (!empty() && last_->buffer.room().size() >= bytes.size()) {
    append(last_->buffer, bytes);
    return;
  }
  // Buffers grow with the waiting data, so that many small arrivals need few buffers.
  const std::size_t capacity =
      std::max(bytes.size(), std::min(std::max(memory_used(), small_capacity), small_max));
  Buffer copy = Buffer::with_capacity(static_cast<std::uint32_t>(capacity));
  append(copy, bytes);
  push(std::move(copy));
}

Buffer ReceiveQueue::pop() noexcept {
  const BlockPtr<Chunk> first(last_->next);
  if (first.get() == last_) {
    last_ = nullptr;
  } else {
    last_->next = first->next;
    last_->memory_used -= first->buffer.capacity();
  }
  return std::move(first->buffer);
}

std::size_t ReceiveQueue::read(MutableBytes target) noexcept {
  std::size_t count = 0;
  while (!empty() && count < target.size()) {
    Buffer& buffer = last_->next->buffer;
    const std::size_t some = std::min(buffer.size(), target.size() - count);
    std::memcpy(target.data() + count, buffer.data(), some);
    buffer.consume(some);
    count += some;
    if (buffer.empty()) pop();
  }
  return count;
}

// --- memory --------------------------------------------------------------------------------------

StreamMemory::~StreamMemory() {
  for (void* chunk : chunks_) BlockPool::release(chunk);
}

Stream& StreamMemory::create(int value, std::size_t unread_max) {
  if constexpr (chunk_streams == 1) return *make_block<Stream>(value, unread_max).release();
  if (free_ == nullptr) {
    chunks_.reserve(chunks_.size() + 1);
    chunks_.push_back(BlockPool::allocate(chunk_streams * sizeof(Stream)));
    auto* const chunk = static_cast<std::byte*>(chunks_.back());
    for (std::size_t index = chunk_streams; index-- > 0;) {
      free_ = ::new (chunk + index * sizeof(Stream)) Free{free_};
    }
  }
  return *::new (std::exchange(free_, free_->next)) Stream(value, unread_max);
}

void StreamMemory::destroy(Stream& stream) noexcept {
  if constexpr (chunk_streams == 1) return BlockDeleter<Stream>()(&stream);
  stream.~Stream();
  free_ = ::new (static_cast<void*>(&stream)) Free{free_};
}

}  // namespace weir::loop::uring
