// The limit of a reverse proxy: passes bytes between each connection and one to the upstream,
// without parsing. Each request takes two receives and two sends.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>

#include "bench/limit/canned.hpp"
#include "bench/limit/epoll_server.hpp"

namespace {

struct Connection {
  int other = -1;  // the connection that gets the bytes
};

class Server : public limit::EpollServer<Server, Connection> {
 public:
  Server(const limit::Options& options, std::uint16_t upstream)
      : EpollServer(limit::start_listening(options)),
        upstream_(weir::os::Address::loopback(upstream)) {}

  bool accepted(int descriptor) {
    const int upstream = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto state = weir::os::start_connect(upstream, upstream_);  // waits
    if (!state) limit::exit_with_error("the upstream", state.error().value());
    if (!weir::os::set_no_delay(upstream, true)) limit::exit_with_error("TCP_NODELAY");
    make_connection(upstream).other = descriptor;
    connection_of(descriptor).other = upstream;
    observe(upstream);
    return true;
  }

  void serve(int descriptor, std::uint32_t events) {
    const int other = connection_of(descriptor).other;
    if (other < 0 || (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) return;
    for (;;) {
      const ssize_t got = ::recv(descriptor, input_.data(), input_.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0 || ::send(other, input_.data(), static_cast<std::size_t>(got),
                             MSG_NOSIGNAL | MSG_DONTWAIT) != got) {
        connection_of(descriptor).other = connection_of(other).other = -1;
        ::close(descriptor);
        ::close(other);
        return;
      }
      // A short receive has emptied the socket; the next edge reports new bytes.
      if (static_cast<std::size_t>(got) < input_.size()) return;
    }
  }

 private:
  weir::os::Address upstream_;
  std::array<char, 16 * 1024> input_;
};

}  // namespace

int main(int argc, char** argv) {
  std::uint16_t upstream = 0;
  const limit::Options options = limit::parse_options(argc, argv,
                                                      {{.name = "--upstream",
                                                        .value = &upstream,
                                                        .help = "port of the upstream on 127.0.0.1",
                                                        .required = true}});
  Server(options, upstream).run();
}
