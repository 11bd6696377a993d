// The limit of large files: answers each request with a canned head and the bytes of one open file,
// which it sends by sendfile(2) without parsing the request.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <csignal>

#include "bench/limit/canned.hpp"
#include "bench/limit/epoll_server.hpp"

namespace {

using limit::exit_with_error;

/// Bytes of one sendfile(2). A piece and the head fit into one packet of the loopback interface.
constexpr std::size_t piece_max = 60 * 1024;

struct Connection {
  limit::RequestCount requests;
  std::size_t owed = 0;  // unsent bytes of heads and files
};

class Server : public limit::EpollServer<Server, Connection> {
 public:
  Server(const limit::Options& options, const std::string& path)
      : EpollServer(limit::start_listening(options)),
        options_(options),
        file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status{};
    if (file_ < 0 || ::fstat(file_, &status) != 0) exit_with_error("opening the file");
    size_ = static_cast<std::size_t>(status.st_size);
    head_ =
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
        "Last-Modified: Thu, 26 Nov 2026 12:00:00 GMT\r\nAccept-Ranges: bytes\r\n"
        "Content-Length: " +
        std::to_string(size_) + "\r\n\r\n";
  }

  bool accepted(int) { return true; }
  void serve(int descriptor, std::uint32_t events) {
    Connection& connection = connection_of(descriptor);
    if ((events & EPOLLIN) != 0) {
      const ssize_t got = ::recv(descriptor, input_.data(), input_.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) {
        ::close(descriptor);
        return;
      }
      const std::string_view bytes(input_.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
      const std::size_t count = connection.requests.add(bytes, options_.request_bytes);
      connection.owed += count * (head_.size() + size_);
    }
    while (connection.owed != 0 && send(descriptor, connection)) {
    }
  }

 private:
  /// Returns true if bytes were sent.
  bool send(int descriptor, Connection& connection) const {
    const std::size_t whole = head_.size() + size_;
    const std::size_t at = (whole - connection.owed % whole) % whole;
    ssize_t sent = 0;
    if (at < head_.size()) {
      sent = ::send(descriptor, head_.data() + at, head_.size() - at, MSG_NOSIGNAL | MSG_MORE);
    } else {
      auto from = static_cast<off_t>(at - head_.size());
      sent = ::sendfile(descriptor, file_, &from, std::min(whole - at, piece_max));
    }
    if (sent <= 0) return false;
    connection.owed -= static_cast<std::size_t>(sent);
    return true;
  }

  const limit::Options options_;
  const int file_;
  std::size_t size_ = 0;
  std::string head_;
  std::array<char, 16 * 1024> input_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  std::signal(SIGPIPE, SIG_IGN);  // sendfile(2) has no MSG_NOSIGNAL
  const limit::Options options = limit::parse_options(
      argc, argv, {{.name = "file", .value = &path, .help = "the file to send", .required = true}});
  Server(options, path).run();
}
