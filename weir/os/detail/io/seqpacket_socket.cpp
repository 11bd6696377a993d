#include "weir/os/local_packets.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "weir/os/detail/io/socket_calls.hpp"

namespace weir::os {
namespace {

// Those who wait until it is their turn. It takes each of them some milliseconds at most.
constexpr int queue_max = 64;

Result<Fd> open_packets() {
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return fail(system_error(errno));
  return Fd(socket);
}

/// The only one that decides at this place, while it lives. The lock is a file of its own, which
/// nobody else can open: whoever can may lock a file, and keep it locked.
class PlaceLock {
 public:
  static Result<PlaceLock> take(std::string_view path);
  PlaceLock(PlaceLock&&) noexcept = default;
  PlaceLock& operator=(PlaceLock&&) = delete;
  /// Removed first: whoever waits for it finds that it is no more the one at its path.
  ~PlaceLock() {
    if (file_) ::unlink(path_.c_str());
  }

 private:
  PlaceLock(std::string path, Fd file) noexcept : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Fd file_;
};

/// Whether the open file is the one at that path.
bool is_at(const Fd& file, const std::string& path) {
  struct stat opened{};
  struct stat named{};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/// One that is not there yet is made; one that is not only this user's is refused.
Result<Fd> open_lock(const std::string& path) {
  constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd file(::open(path.c_str(), flags, S_IRUSR | S_IWUSR));
  if (!file) return fail(system_error(errno == ELOOP ? EACCES : errno));
  struct stat status{};
  if (::fstat(file.get(), &status) < 0) return fail(system_error(errno));
  const bool only_ours = S_ISREG(status.st_mode) && status.st_uid == own_user() &&
                         (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (!only_ours) return fail(system_error(EACCES));
  return file;
}

Result<PlaceLock> PlaceLock::take(std::string_view place) {
  constexpr int tries_max = 500;
  constexpr int pause_milliseconds = 10;
  const std::string path = std::string(place) + ".lock";
  for (int tries = 0; tries < tries_max; ++tries) {
    auto file = open_lock(path);
    if (!file) return fail(file.error());
    if (::flock(file->get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_at(*file, path)) return PlaceLock(path, std::move(*file));
      continue;  // whoever had it has just removed it
    }
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(system_error(errno));
    ::poll(nullptr, 0, pause_milliseconds);
  }
  return fail(system_error(ETIMEDOUT));
}

Result<Meeting> listen_at(const Address& place) {
  auto listener = open_packets();
  if (!listener) return fail(listener.error());
  // Before it is bound: from its first moment on nobody else can connect.
  if (::fchmod(listener->get(), S_IRUSR | S_IWUSR) < 0 ||
      ::bind(listener->get(), as_sockaddr(place), place.size()) < 0 ||
      ::listen(listener->get(), queue_max) < 0) {
    return fail(system_error(errno));
  }
  const auto file = file_of(place);
  return Meeting{.connection = {}, .listener = std::move(*listener), .file = file};
}

/// All descriptors that came with a message.
std::vector<Fd> take_descriptors(const msghdr& message) {
  std::vector<Fd> taken;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(const_cast<msghdr*>(&message), each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t index = 0; index < count; ++index) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(each) + index * sizeof descriptor, sizeof descriptor);
      taken.emplace_back(descriptor);
    }
  }
  return taken;
}

}  // namespace

Result<Meeting> meet_at(const Address& place) {
  if (place.path().empty()) return fail(Errc::bad_input);
  const auto lock = PlaceLock::take(place.path());
  if (!lock) return fail(lock.error());
  auto connection = open_packets();
  if (!connection) return fail(connection.error());
  const auto file = file_of(place);
  if (::connect(connection->get(), as_sockaddr(place), place.size()) == 0) {
    Meeting meeting{.connection = std::move(*connection), .listener = {}};
    // Somebody who heeds no lock may have replaced it between the two.
    if (file == file_of(place)) meeting.file = file;
    return meeting;
  }
  if (errno == ENOENT) return listen_at(place);
  if (errno != ECONNREFUSED) return fail(system_error(errno));
  // A file that is no socket is refused in the same words as a socket without a listener.
  const auto stale = file_of(place);
  if (!stale) return fail(system_error(ENOTSOCK));
  remove_local_path(place, *stale);
  return listen_at(place);
}

Result<> send_packet(int socket, Bytes bytes, std::span<const int> descriptors) {
  if (descriptors.size() > packet_descriptors_max) return fail(Errc::limit_reached);
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(packet_descriptors_max * sizeof(int))>
      control{};
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  for (;;) {
    if (::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0) return {};
    if (errno != EINTR) return fail(system_error(errno));
  }
}

Result<Packet> receive_packet(int socket, MutableBytes room) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(packet_descriptors_max * sizeof(int))>
      control{};
  iovec piece{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t size = 0;
  do {
    size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return fail(system_error(errno));
  Packet packet{static_cast<std::size_t>(size), take_descriptors(message)};
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return fail(system_error(EMSGSIZE));
  return packet;
}

Result<> shut_down_receiving(int socket) {
  if (::shutdown(socket, SHUT_RD) < 0) return fail(system_error(errno));
  return {};
}

Result<std::uint32_t> peer_user(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
    return fail(system_error(errno));
  }
  return peer.uid;
}

std::uint32_t own_user() noexcept {
  return ::geteuid();
}

}  // namespace weir::os
