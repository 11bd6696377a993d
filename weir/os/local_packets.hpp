// Unix sockets on which messages keep their bounds and can carry open descriptors: how the
// processes of one service give sockets to each other.
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

/// So many descriptors one packet may carry; the kernel's own limit is 253.
inline constexpr std::size_t packet_descriptors_max = 250;

/// What meet_at() gives: one of the two.
struct Meeting {
  Fd connection;  ///< to whoever listened there first
  Fd listener;    ///< nobody did: now this process does
  /// Of the listener, whichever it is, for remove_local_path(); nothing if that cannot be told.
  std::optional<FileIdentity> file = {};
};

/// Connects to whoever listens for packets at the path `place`; where nobody does, listens there,
/// so that of processes that come at the same time one listens and the others are connected. Only
/// this user may connect: the file's mode is 0600. The file of a dead listener is replaced.
/// Waits for others who are just deciding the same, five seconds at most: whoever does has the file
/// "PATH.lock" meanwhile, which only this user may open.
/// Errors: Errc::bad_input for what is no path; ENOTSOCK where the path is something else's,
/// EPROTOTYPE where it is another kind of socket; EACCES where the lock is another user's or no
/// plain file; ETIMEDOUT; the kernel's.
Result<Meeting> meet_at(const Address& place);

/// Sends all of `bytes` as one packet, with descriptors of the same open files. Does not wait:
/// EAGAIN when there is no room. EPIPE when the peer has gone; no signal is raised.
Result<> send_packet(int socket, Bytes bytes, std::span<const int> descriptors = {});

struct Packet {
  std::size_t size = 0;  ///< 0: the peer has ended
  std::vector<Fd> descriptors = {};
};

/// The next packet, into `room`. EAGAIN when there is none; EMSGSIZE when bytes or descriptors of
/// it were lost for want of room (or of free descriptors): what came of it is closed.
Result<Packet> receive_packet(int socket, MutableBytes room);

/// Nothing that is sent from now on arrives here; what has arrived can still be received.
Result<> shut_down_receiving(int socket);

/// The user of the process on the other side: who connected, or who began to listen.
Result<std::uint32_t> peer_user(int connection);
/// The effective user of this process.
std::uint32_t own_user() noexcept;

}  // namespace weir::os
