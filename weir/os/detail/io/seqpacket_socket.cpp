#include "weir/os/detail/io/seqpacket_socket.hpp"

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

// Connections that wait to be accepted. Each takes a few milliseconds at most.
constexpr int backlog = 64;

Result<Fd> open_seqpacket() {
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return fail(system_error(errno));
  return Fd(socket);
}

/// A PathLock gives one process the exclusive right to connect or listen at an address. The lock is
/// a separate file that no other user can open, because each process that can open a file can keep
/// it locked.
class PathLock {
 public:
  static Result<PathLock> take(std::string_view path);
  PathLock(PathLock&&) noexcept = default;
  PathLock& operator=(PathLock&&) = delete;
  /// Removes the file before the lock is released. A waiting process then finds that its open file
  /// is no longer at the path.
  ~PathLock() {
    if (file_) ::unlink(path_.c_str());
  }

 private:
  PathLock(std::string path, Fd file) noexcept : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Fd file_;
};

/// Returns true if `path` names the open file.
bool is_at(const Fd& file, const std::string& path) {
  struct stat opened{};
  struct stat named{};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/// Opens the lock file and creates a missing one.
/// Errors: EACCES if the file is not a plain file of this user alone; the kernel's.
Result<Fd> open_lock(const std::string& path) {
  constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd file(::open(path.c_str(), flags, S_IRUSR | S_IWUSR));
  if (!file) return fail(system_error(errno == ELOOP ? EACCES : errno));
  struct stat status{};
  if (::fstat(file.get(), &status) < 0) return fail(system_error(errno));
  const bool only_ours = S_ISREG(status.st_mode) && status.st_uid == effective_user_id() &&
                         (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (!only_ours) return fail(system_error(EACCES));
  return file;
}

Result<PathLock> PathLock::take(std::string_view address) {
  constexpr int tries_max = 500;
  constexpr int pause_milliseconds = 10;
  const std::string path = std::string(address) + ".lock";
  for (int tries = 0; tries < tries_max; ++tries) {
    auto file = open_lock(path);
    if (!file) return fail(file.error());
    if (::flock(file->get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_at(*file, path)) return PathLock(path, std::move(*file));
      continue;  // the previous holder has just removed the file
    }
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(system_error(errno));
    ::poll(nullptr, 0, pause_milliseconds);
  }
  return fail(system_error(ETIMEDOUT));
}

Result<Rendezvous> listen_at(const Address& address) {
  WEIR_TRY(auto listener, open_seqpacket());
  // Set the mode before bind(), so that other users can never connect.
  if (::fchmod(listener.get(), S_IRUSR | S_IWUSR) < 0 ||
      ::bind(listener.get(), as_sockaddr(address), address.size()) < 0 ||
      ::listen(listener.get(), backlog) < 0) {
    return fail(system_error(errno));
  }
  const auto file = socket_file(address);
  return Rendezvous{.connection = {}, .listener = std::move(listener), .file = file};
}

/// Takes ownership of all descriptors that came with a message.
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

Result<Rendezvous> connect_or_listen(const Address& address) {
  if (address.path().empty()) return fail(Errc::bad_input);
  const auto lock = PathLock::take(address.path());
  if (!lock) return fail(lock.error());
  WEIR_TRY(auto connection, open_seqpacket());
  const auto file = socket_file(address);
  if (::connect(connection.get(), as_sockaddr(address), address.size()) == 0) {
    Rendezvous meeting{.connection = std::move(connection), .listener = {}};
    // A process that ignores the lock may have replaced the file between the two calls.
    if (file == socket_file(address)) meeting.file = file;
    return meeting;
  }
  if (errno == ENOENT) return listen_at(address);
  if (errno != ECONNREFUSED) return fail(system_error(errno));
  // The kernel returns ECONNREFUSED for a file that is not a socket too.
  const auto stale = socket_file(address);
  if (!stale) return fail(system_error(ENOTSOCK));
  remove_local_path(address, *stale);
  return listen_at(address);
}

Result<> send_message(int socket, Bytes bytes, std::span<const int> descriptors) {
  if (descriptors.size() > message_descriptors_max) return fail(Errc::limit_reached);
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(message_descriptors_max * sizeof(int))>
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

Result<Message> receive_message(int socket, MutableBytes room) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(message_descriptors_max * sizeof(int))>
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
  Message packet{static_cast<std::size_t>(size), take_descriptors(message)};
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return fail(system_error(EMSGSIZE));
  return packet;
}

Result<> shut_down_receiving(int socket) {
  if (::shutdown(socket, SHUT_RD) < 0) return fail(system_error(errno));
  return {};
}

Result<std::uint32_t> peer_user_id(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
    return fail(system_error(errno));
  }
  return peer.uid;
}

std::uint32_t effective_user_id() noexcept {
  return ::geteuid();
}

}  // namespace weir::os
