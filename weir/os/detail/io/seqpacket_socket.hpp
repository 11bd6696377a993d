// Unix seqpacket sockets, by which the processes of one service send messages and descriptors to
// each other. Messages keep their boundaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::os {

/// The most descriptors in one message. The kernel's own limit is 253.
inline constexpr std::size_t message_descriptors_max = 250;

/// The result of connect_or_listen(): either a connection or a listener. Both are non-blocking and
/// close-on-exec.
struct Rendezvous {
  Fd connection;  ///< to the process that listens there
  Fd listener;    ///< of this process, if no other process listens there
  /// The listener's socket file, for remove_local_path(); nullopt if it cannot be determined.
  std::optional<FileIdentity> file = {};
};

/// Connects to the process that listens at the path `address`, or listens there if no process does.
/// One of several processes that call at the same time listens, and the others are connected. The
/// mode of the socket file is 0600, so that only this user may connect. The file of a dead listener
/// is replaced. The caller locks the file "PATH.lock", which only this user may open, during the
/// call. It blocks for at most five seconds while another process holds the lock.
/// Errors: Errc::bad_input if `address` is not a path; ENOTSOCK if the path is not a socket;
/// EPROTOTYPE if it is another type of socket; ETIMEDOUT; the kernel's. EACCES means that the lock
/// belongs to another user, that other users may open it, or that it is not a plain file.
Result<Rendezvous> connect_or_listen(const Address& address);

/// Sends `bytes` as one message, with duplicates of `descriptors`. It does not wait and raises no
/// signal.
/// Errors: EAGAIN if there is no room; EPIPE if the peer has closed; Errc::limit_reached for more
/// than `message_descriptors_max` descriptors; the kernel's.
Result<> send_message(int socket, Bytes bytes, std::span<const int> descriptors = {});

struct Message {
  std::size_t size = 0;  ///< in bytes; 0: the peer has closed
  std::vector<Fd> descriptors = {};
};

/// Receives the next message into `room`. It does not wait.
/// Errors: EAGAIN if there is no message; EMSGSIZE if bytes or descriptors of the message were
/// lost; the kernel's. Descriptors are lost if there is no room or no free descriptor. The
/// remaining ones of such a message are closed.
Result<Message> receive_message(int socket, MutableBytes room);

/// Ends receiving. Messages that are sent later do not arrive; those in the queue can be received.
Result<> shut_down_receiving(int socket);

/// Returns the user id of the peer process at the time at which it connected or began to listen.
Result<std::uint32_t> peer_user_id(int connection);
/// Returns the effective user id of this process.
std::uint32_t effective_user_id() noexcept;

}  // namespace weir::os
