// Datagram system calls: receiving and sending many datagrams in one call.
#include "weir/loop/detail/readiness/datagram_calls.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

namespace weir::loop {
namespace {

// Maximum of messages in one call. A larger number would save little and delay other sockets.
constexpr std::size_t messages_max = 32;
// The kernel limits the segments of one message (before Linux 6.9). The bytes fit into an IP
// packet of 64 KiB with any headers.
constexpr std::size_t segments_max = 64;
constexpr std::size_t segmented_bytes_max = 65'000;
constexpr std::size_t pieces_max = 256;

DatagramTryResult finished(Operation& operation, std::error_code error = {}) noexcept {
  operation.finish(error);
  return {.finished = true, .may_continue = true};
}

/// Gives each slot a buffer. Returns the number of slots for which there was memory.
std::size_t lend_buffers(std::span<Datagram> slots, std::uint32_t bytes) noexcept {
  for (std::size_t index = 0; index < slots.size(); ++index) {
    Buffer& buffer = slots[index].buffer;
    buffer.clear();
    if (buffer.capacity() >= bytes) continue;
    try {
      buffer = Buffer::with_capacity(bytes);
    } catch (const std::bad_alloc&) {
      return index;
    }
  }
  return slots.size();
}

/// Space for one control message that holds one number.
template <class Number>
struct Control {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(Number))> bytes;
};
using SegmentControl = Control<std::uint16_t>;  // UDP_SEGMENT, when sending
using JoinedControl = Control<int>;             // UDP_GRO, when receiving

/// Returns the size of each joined datagram; 0 if the kernel has not joined any.
std::size_t size_of_each(const msghdr& header) noexcept {
  const cmsghdr* const message = CMSG_FIRSTHDR(&header);
  if (message == nullptr || message->cmsg_level != IPPROTO_UDP || message->cmsg_type != UDP_GRO) {
    return 0;
  }
  int size = 0;
  std::memcpy(&size, CMSG_DATA(message), sizeof size);
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

void arrived(Datagram& slot, std::size_t size, ReceiveDatagramsOperation& operation,
             BackendCounters& counters) noexcept {
  const std::size_t kept = std::min<std::size_t>(size, operation.bytes_max);
  slot.buffer.commit(kept);
  slot.truncated_bytes = size - kept;
  counters.bytes_received.add(kept);
}

void take_buffers_back(std::span<Datagram> slots) noexcept {
  for (Datagram& slot : slots) slot.buffer = {};
}

/// The datagrams that are left to send, at most as many as one system call takes.
class Messages {
 public:
  Messages(std::span<const OutgoingDatagram> datagrams, bool segmenting) noexcept {
    while (count_ < messages_max && !datagrams.empty()) {
      const std::size_t run = segmenting ? run_of(datagrams) : 1;
      if (pieces_used_ + run > pieces_max) break;
      add(datagrams.first(run));
      datagrams = datagrams.subspan(run);
    }
  }

  /// Returns the number of messages that the kernel has taken, at least one; or -1 and errno.
  int send(int descriptor) noexcept {
    return ::sendmmsg(descriptor, messages_.data(), static_cast<unsigned>(count_), MSG_NOSIGNAL);
  }
  /// Returns the number of datagrams in the first `messages` messages.
  std::size_t datagrams_in(int messages) const noexcept {
    std::size_t sum = 0;
    for (int each = 0; each < messages; ++each) sum += runs_[static_cast<std::size_t>(each)];
    return sum;
  }
  bool begins_with_segments() const noexcept { return runs_[0] > 1; }

 private:
  /// Returns the number of datagrams at the front that make one message: all of one size except
  /// the last, which may be shorter.
  static std::size_t run_of(std::span<const OutgoingDatagram> datagrams) noexcept {
    const OutgoingDatagram& first = datagrams.front();
    const std::size_t size = first.bytes.size();
    if (size == 0) return 1;
    const std::size_t most = std::min({datagrams.size(), segments_max, segmented_bytes_max / size});
    std::size_t run = 1;
    while (run < most) {
      const OutgoingDatagram& next = datagrams[run];
      if (next.bytes.empty() || next.bytes.size() > size || next.peer != first.peer) break;
      ++run;
      if (next.bytes.size() < size) break;
    }
    return run;
  }

  void add(std::span<const OutgoingDatagram> run) noexcept {
    const OutgoingDatagram& first = run.front();
    msghdr& header = messages_[count_].msg_hdr;
    header = {};
    if (first.peer.size() != 0) {
      header.msg_name = const_cast<void*>(first.peer.data());
      header.msg_namelen = first.peer.size();
    }
    header.msg_iov = &pieces_[pieces_used_];
    header.msg_iovlen = run.size();
    for (const OutgoingDatagram& each : run) {
      pieces_[pieces_used_++] = {const_cast<std::byte*>(each.bytes.data()), each.bytes.size()};
    }
    if (run.size() > 1) segment(header, static_cast<std::uint16_t>(first.bytes.size()));
    runs_[count_++] = run.size();
  }

  void segment(msghdr& header, std::uint16_t size) noexcept {
    SegmentControl& control = controls_[count_];
    control = {};
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    cmsghdr* const message = CMSG_FIRSTHDR(&header);
    message->cmsg_level = IPPROTO_UDP;
    message->cmsg_type = UDP_SEGMENT;
    message->cmsg_len = CMSG_LEN(sizeof size);
    std::memcpy(CMSG_DATA(message), &size, sizeof size);
  }

  // The arrays are kilobytes, so only the used parts are written.
  std::array<mmsghdr, messages_max> messages_;
  std::array<std::size_t, messages_max> runs_;
  std::array<SegmentControl, messages_max> controls_;
  std::array<iovec, pieces_max> pieces_;
  std::size_t count_ = 0;
  std::size_t pieces_used_ = 0;
};

/// Returns true if an error may mean only that the message cannot be cut into segments. Either a
/// segment is longer than this route allows, or the route handles single packets only.
bool may_be_of_segmenting(int error) noexcept {
  return error == EMSGSIZE || error == EINVAL || error == EIO;
}

/// Gives the buffers back. Finishes the operation unless it has to wait.
DatagramTryResult nothing_received(std::span<Datagram> slots, ReceiveDatagramsOperation& operation,
                                   int error) noexcept {
  take_buffers_back(slots);
  if (error == EAGAIN || error == EWOULDBLOCK) return {};
  return finished(operation, system_error(error));
}

/// Uses recvfrom(2), which costs the kernel less than recvmmsg(2) for a single datagram.
DatagramTryResult receive_one(int descriptor, Datagram& slot, ReceiveDatagramsOperation& operation,
                              BackendCounters& counters) {
  ssize_t size = 0;
  socklen_t peer_size = 0;
  do {
    counters.system_calls.add();
    peer_size = os::Address::capacity;
    size = ::recvfrom(descriptor, slot.buffer.room().data(), operation.bytes_max, MSG_TRUNC,
                      static_cast<sockaddr*>(slot.peer.buffer()), &peer_size);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return nothing_received({&slot, 1}, operation, errno);
  operation.count = 1;
  arrived(slot, static_cast<std::size_t>(size), operation, counters);
  slot.segment_size = 0;
  slot.peer.set_size(peer_size);
  return finished(operation);
}

/// Uses sendto(2), which costs the kernel less for a single datagram.
DatagramTryResult send_one(int descriptor, SendDatagramsOperation& operation,
                           BackendCounters& counters) noexcept {
  const OutgoingDatagram& datagram = operation.datagrams.front();
  const bool to_peer = datagram.peer.size() != 0;
  const void* const peer = to_peer ? datagram.peer.data() : nullptr;
  ssize_t sent = 0;
  do {
    counters.system_calls.add();
    sent = ::sendto(descriptor, datagram.bytes.data(), datagram.bytes.size(), MSG_NOSIGNAL,
                    static_cast<const sockaddr*>(peer), to_peer ? datagram.peer.size() : 0);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    return finished(operation, system_error(errno));
  }
  counters.bytes_sent.add(datagram.bytes.size());
  operation.sent = 1;
  return finished(operation);
}

// The arrays of the next two functions are kilobytes. They are not inlined, so that a single
// datagram does not pay for such a frame.

[[gnu::noinline]] DatagramTryResult receive_several(int descriptor, std::span<Datagram> slots,
                                                    ReceiveDatagramsOperation& operation,
                                                    BackendCounters& counters) {
  std::array<mmsghdr, messages_max> messages;
  std::array<iovec, messages_max> rooms;
  std::array<JoinedControl, messages_max> controls;
  for (std::size_t index = 0; index < slots.size(); ++index) {
    Datagram& slot = slots[index];
    rooms[index] = {slot.buffer.room().data(), operation.bytes_max};
    msghdr& header = messages[index].msg_hdr;
    header = {};
    header.msg_name = slot.peer.buffer();
    header.msg_namelen = os::Address::capacity;
    header.msg_iov = &rooms[index];
    header.msg_iovlen = 1;
    if (operation.gro) {
      header.msg_control = controls[index].bytes.data();
      header.msg_controllen = controls[index].bytes.size();
    }
  }
  int received = 0;
  do {
    counters.system_calls.add();
    // MSG_TRUNC returns the length of the datagram, not of the part that fitted.
    received = ::recvmmsg(descriptor, messages.data(), static_cast<unsigned>(slots.size()),
                          MSG_TRUNC, nullptr);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return nothing_received(slots, operation, errno);
  operation.count = static_cast<std::size_t>(received);
  for (std::size_t index = 0; index < operation.count; ++index) {
    arrived(slots[index], messages[index].msg_len, operation, counters);
    slots[index].segment_size = size_of_each(messages[index].msg_hdr);
    slots[index].peer.set_size(messages[index].msg_hdr.msg_namelen);
  }
  operation.finish();
  return {.finished = true, .may_continue = operation.count == slots.size()};
}

[[gnu::noinline]] DatagramTryResult send_several(int descriptor, SendDatagramsOperation& operation,
                                                 BackendCounters& counters) {
  bool segmenting = true;
  while (operation.sent < operation.datagrams.size()) {
    const auto left = operation.datagrams.subspan(operation.sent);
    Messages messages(left, segmenting);
    counters.system_calls.add();
    const int taken = messages.send(descriptor);
    if (taken >= 0) {
      const std::size_t sent = messages.datagrams_in(taken);
      for (const OutgoingDatagram& each : left.first(sent)) {
        counters.bytes_sent.add(each.bytes.size());
      }
      operation.sent += sent;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return {};
    } else if (messages.begins_with_segments() && may_be_of_segmenting(errno)) {
      segmenting = false;
    } else if (errno != EINTR) {
      return finished(operation, system_error(errno));
    }
  }
  return finished(operation);
}

}  // namespace

DatagramTryResult try_receive(int descriptor, ReceiveDatagramsOperation& operation,
                              BackendCounters& counters) {
  assert(!operation.target.empty() && operation.bytes_max != 0);
  operation.count = 0;
  std::span<Datagram> slots =
      operation.target.first(std::min(operation.target.size(), messages_max));
  slots = slots.first(lend_buffers(slots, operation.bytes_max));
  if (slots.empty()) return finished(operation, system_error(ENOMEM));
  if (slots.size() == 1 && !operation.gro) {
    return receive_one(descriptor, slots.front(), operation, counters);
  }
  return receive_several(descriptor, slots, operation, counters);
}

DatagramTryResult try_send(int descriptor, SendDatagramsOperation& operation,
                           BackendCounters& counters) {
  if (operation.datagrams.size() == 1 && operation.sent == 0) {
    return send_one(descriptor, operation, counters);
  }
  return send_several(descriptor, operation, counters);
}

}  // namespace weir::loop
