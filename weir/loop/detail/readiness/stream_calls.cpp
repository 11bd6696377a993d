#include "weir/loop/detail/readiness/stream_calls.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace weir::loop {
namespace {

constexpr std::size_t gathered_max = 64;

/// The pieces that are left to send, at most as many as one system call takes.
class Gathered {
 public:
  explicit Gathered(const SendOperation& operation) noexcept : last_(operation.last) {
    std::size_t skip = operation.sent;
    for (const Bytes piece : operation.pieces) {
      if (piece.size() <= skip) {
        skip -= piece.size();
        continue;
      }
      if (count_ == gathered_max) {
        whole_ = false;
        return;
      }
      const Bytes rest = piece.subspan(skip);
      skip = 0;
      pieces_[count_++] = {const_cast<std::byte*>(rest.data()), rest.size()};
      bytes_ += rest.size();
    }
  }

  std::size_t bytes() const noexcept { return bytes_; }
  /// Returns true if these pieces are all that is left.
  bool whole() const noexcept { return whole_; }

  ssize_t send(int descriptor) noexcept {
    // MSG_MORE: the end of the stream goes into the packet of the last bytes.
    const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (last_ ? MSG_MORE : 0);
    if (count_ == 1) return ::send(descriptor, pieces_[0].iov_base, bytes_, flags);
    msghdr message{};
    message.msg_iov = pieces_.data();
    message.msg_iovlen = count_;
    return ::sendmsg(descriptor, &message, flags);
  }

 private:
  std::array<iovec, gathered_max> pieces_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  bool whole_ = true;
  bool last_;
};

}  // namespace

SendTryResult try_send(int descriptor, SendOperation& operation, BackendCounters& counters) {
  for (;;) {
    Gathered gathered(operation);
    if (gathered.bytes() == 0) return {.finished = true};
    counters.system_calls.add();
    const ssize_t sent = gathered.send(descriptor);
    if (sent >= 0) {
      const auto count = static_cast<std::size_t>(sent);
      operation.sent += count;
      counters.bytes_sent.add(count);
      if (count < gathered.bytes()) return {};
      if (gathered.whole()) return {.finished = true};
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return {};
    } else if (errno != EINTR) {
      return {.error = errno};
    }
  }
}

bool ends_connection(int error) noexcept {
  return error != EPIPE && error != ENOBUFS && error != ENOMEM && error != ENOTCONN;
}

}  // namespace weir::loop
