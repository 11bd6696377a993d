// The limit of epoll: sends canned responses, edge-triggered, without unnecessary receives.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>

#include "bench/limit/canned.hpp"
#include "bench/limit/epoll_server.hpp"

namespace {

using limit::exit_with_error;

struct Connection {
  limit::RequestCount requests;
  std::size_t owed = 0;  // unsent bytes of responses
  bool blocked = false;  // the send buffer is full
};

class Server : public limit::EpollServer<Server, Connection> {
 public:
  explicit Server(const limit::Options& options)
      : EpollServer(limit::start_listening(options)), options_(options), answers_(options) {}

  /// A connection that closes needs no registration if its request is there already.
  bool accepted(int descriptor) { return !options_.close || !receive(descriptor); }

  void serve(int descriptor, std::uint32_t events) {
    Connection& connection = connection_of(descriptor);
    if ((events & EPOLLOUT) != 0 && connection.blocked) {
      connection.blocked = false;
      if (send_owed(descriptor, connection)) return;
    }
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) receive(descriptor);
  }

 private:
  /// Returns whether the connection is gone.
  bool receive(int descriptor) {
    for (;;) {
      const ssize_t got = ::recv(descriptor, input_.data(), input_.size(), 0);
      if (got <= 0) {
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        ::close(descriptor);
        return true;
      }
      Connection& connection = connection_of(descriptor);
      const std::string_view bytes(input_.data(), static_cast<std::size_t>(got));
      const std::size_t count = connection.requests.add(bytes, options_.request_bytes);
      connection.owed += count * answers_.size();
      if (count != 0 && !connection.blocked && send_owed(descriptor, connection)) return true;
      // A short receive has emptied the socket; the next edge reports new bytes.
      if (bytes.size() < input_.size()) return false;
    }
  }

  /// Returns whether the connection is gone.
  bool send_owed(int descriptor, Connection& connection) {
    while (connection.owed != 0) {
      const std::string_view next = answers_.next(connection.owed);
      const ssize_t sent = ::send(descriptor, next.data(), next.size(), MSG_NOSIGNAL);
      if (sent < 0) {
        connection.blocked = errno == EAGAIN;
        if (connection.blocked) return false;
        break;
      }
      connection.owed -= static_cast<std::size_t>(sent);
    }
    if (connection.owed == 0 && !options_.close) return false;
    ::close(descriptor);
    return true;
  }

  const limit::Options options_;
  const limit::CannedResponses answers_;
  std::array<char, 16 * 1024> input_;
};

}  // namespace

int main(int argc, char** argv) {
  Server(limit::parse_options(argc, argv)).run();
}
