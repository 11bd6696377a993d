// The limit of HTTP/2: canned responses over epoll, edge-triggered, by prior knowledge.
//
// It reads the headers of frames only, and decodes no field. Each stream that the client ends gets
// the same HEADERS and DATA. All responses of one receive leave in one send. It keeps no account of
// windows, so the windows of the client must have room for all responses, as those of h2load do.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "bench/limit/canned.hpp"
#include "bench/limit/epoll_server.hpp"

namespace {

constexpr std::size_t preface_bytes = 24;
constexpr std::size_t header_bytes = 9;
enum Type : unsigned char { data = 0, headers = 1, settings = 4 };
enum Flag : unsigned char { end_stream = 1, ack = 1, end_headers = 4 };

std::string frame(Type type, unsigned char flags, std::string_view payload) {
  std::string bytes(header_bytes, '\0');
  for (int index = 0; index < 3; ++index) {
    bytes[static_cast<std::size_t>(index)] = static_cast<char>(payload.size() >> 8 * (2 - index));
  }
  bytes[3] = static_cast<char>(type);
  bytes[4] = static_cast<char>(flags);
  return bytes.append(payload);
}

/// The frames of one response. The identifier of the stream is written into each copy.
class CannedStream {
 public:
  explicit CannedStream(std::size_t body_bytes) {
    const std::string length = std::to_string(body_bytes);
    std::string block = "\x88";                              // :status: 200
    block += std::string("\x0f\x10\x0a", 3) + "text/plain";  // content-type
    block += std::string("\x0f\x0d") + static_cast<char>(length.size()) + length;
    block += std::string("\x0f\x12\x1d", 3) + "Thu, 26 Nov 2026 19:00:00 GMT";  // date
    frames_ = frame(headers, end_headers, block);
    second_ = frames_.size();
    frames_ += frame(data, end_stream, std::string(body_bytes, 'x'));
  }

  void append_to(std::string& output, const unsigned char* stream) const {
    const std::size_t begin = output.size();
    output += frames_;
    std::memcpy(output.data() + begin + 5, stream, 4);
    std::memcpy(output.data() + begin + second_ + 5, stream, 4);
  }

 private:
  std::string frames_;
  std::size_t second_;  // where DATA begins
};

struct Connection {
  std::size_t skip = preface_bytes;  // bytes of a payload, or of the preface
  std::array<unsigned char, header_bytes> header{};
  std::size_t header_size = 0;  // bytes in header
  std::string unsent;           // frames that the send buffer had no room for
};

class Server : public limit::EpollServer<Server, Connection> {
 public:
  Server(const limit::Options& options, std::size_t body_bytes)
      : EpollServer(limit::start_listening(options)), answer_(body_bytes) {
    output_.reserve(output_bytes_max);
  }

  bool accepted(int descriptor) {
    // Streams at a time: 100, the default of other servers.
    output_ = frame(settings, 0, std::string_view("\0\x03\0\0\0\x64", 6));
    return send_output(descriptor, connection_of(descriptor));
  }

  void serve(int descriptor, std::uint32_t events) {
    Connection& connection = connection_of(descriptor);
    if ((events & EPOLLOUT) != 0 && !connection.unsent.empty()) {
      output_.swap(connection.unsent);
      connection.unsent.clear();
      if (!send_output(descriptor, connection)) return;
    }
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
      receive(descriptor, connection);
    }
  }

 private:
  void receive(int descriptor, Connection& connection) {
    for (;;) {
      const ssize_t got = ::recv(descriptor, input_.data(), input_.size(), 0);
      if (got <= 0) {
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        ::close(descriptor);
        return;
      }
      const auto count = static_cast<std::size_t>(got);
      read_frames(connection, input_.data(), input_.data() + count);
      if (!send_output(descriptor, connection)) return;
      // A short receive has emptied the socket; the next edge reports new bytes.
      if (count < input_.size()) return;
    }
  }

  void read_frames(Connection& connection, const unsigned char* at, const unsigned char* end) {
    while (at != end) {
      const auto left = static_cast<std::size_t>(end - at);
      if (connection.skip != 0) {
        const std::size_t count = std::min(connection.skip, left);
        connection.skip -= count;
        at += count;
      } else if (connection.header_size == 0 && left >= header_bytes) {
        connection.skip = answer_frame(at);
        at += header_bytes;
      } else {
        const std::size_t count = std::min(header_bytes - connection.header_size, left);
        std::memcpy(connection.header.data() + connection.header_size, at, count);
        at += count;
        connection.header_size += count;
        if (connection.header_size != header_bytes) continue;
        connection.header_size = 0;
        connection.skip = answer_frame(connection.header.data());
      }
    }
  }

  /// Returns the size of the payload.
  std::size_t answer_frame(const unsigned char* header) {
    const unsigned char type = header[3];
    const unsigned char flags = header[4];
    if ((type == headers || type == data) && (flags & end_stream) != 0) {
      answer_.append_to(output_, header + 5);
    } else if (type == settings && (flags & ack) == 0) {
      output_ += frame(settings, ack, "");
    }
    return static_cast<std::size_t>(header[0]) << 16 | static_cast<std::size_t>(header[1]) << 8 |
           header[2];
  }

  /// Returns false if the connection has ended.
  bool send_output(int descriptor, Connection& connection) {
    if (!connection.unsent.empty()) {
      connection.unsent += output_;
      output_.clear();
      return true;
    }
    std::string_view rest = output_;
    while (!rest.empty()) {
      const ssize_t sent = ::send(descriptor, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) {
        output_.clear();
        ::close(descriptor);
        return false;
      }
      if (sent < 0) {
        connection.unsent = rest;
        break;
      }
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    output_.clear();
    return true;
  }

  static constexpr std::size_t output_bytes_max = 1024 * 1024;

  const CannedStream answer_;
  std::string output_;  // frames of this turn
  std::array<unsigned char, 64 * 1024> input_;
};

}  // namespace

int main(int argc, char** argv) {
  std::size_t body_bytes = 11;
  const auto options = limit::parse_options(
      argc, argv,
      {{.name = "--body-bytes", .value = &body_bytes, .help = "bytes of a body", .max = 16384}});
  Server(options, body_bytes).run();
}
