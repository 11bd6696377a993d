// The limit of WebSocket echoes: answers fixed bytes to each fixed number of bytes behind the
// handshake, without reading frames. It ends each connection whose first bytes are no request.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "bench/limit/canned.hpp"
#include "bench/limit/epoll_server.hpp"

namespace {

constexpr std::size_t client_overhead = 6;  // of a frame with a payload below 126 bytes
constexpr std::string_view handshake_answer =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

struct Connection {
  bool open = false;          // the handshake was answered
  std::size_t left_over = 0;  // bytes of a frame that has not ended
};

class Server : public limit::EpollServer<Server, Connection> {
 public:
  Server(const limit::Options& options, std::size_t payload)
      : EpollServer(limit::start_listening(options)), payload_(payload) {
    std::string frame = "\x82";
    frame += static_cast<char>(payload);
    frame += std::string(payload, 'x');
    while (answers_.size() < 64 * 1024) answers_ += frame;
  }

  bool accepted(int) { return true; }

  void serve(int descriptor, std::uint32_t) {
    for (;;) {
      const ssize_t got = ::recv(descriptor, input_.data(), input_.size(), 0);
      if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) ::close(descriptor);
        return;
      }
      Connection& connection = connection_of(descriptor);
      std::string_view answer = handshake_answer;
      if (std::exchange(connection.open, true)) {
        const std::size_t total = connection.left_over + static_cast<std::size_t>(got);
        const std::size_t count = total / (payload_ + client_overhead);
        connection.left_over = total % (payload_ + client_overhead);
        answer = std::string_view(answers_).substr(0, count * (payload_ + 2));
      }
      if (!answer.empty() && ::send(descriptor, answer.data(), answer.size(), MSG_NOSIGNAL) !=
                                 static_cast<ssize_t>(answer.size())) {
        ::close(descriptor);
        return;
      }
      if (static_cast<std::size_t>(got) < input_.size()) return;
    }
  }

 private:
  const std::size_t payload_;
  std::string answers_;
  std::array<char, 16 * 1024> input_;
};

}  // namespace

int main(int argc, char** argv) {
  std::size_t payload = 5;
  const limit::Options options = limit::parse_options(argc, argv,
                                                      {{.name = "--payload",
                                                        .value = &payload,
                                                        .help = "bytes of a message, below 126",
                                                        .max = 125}});
  Server(options, payload).run();
}
