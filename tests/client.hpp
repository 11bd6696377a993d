// A Client is an HTTP/1.1 client for tests. It sends any bytes, including invalid ones, and parses
// answers with the parser of the library's client. It also rejects what only lax servers send.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/process.hpp"
#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::tests {

struct Response {
  int status = 0;
  std::string reason;
  std::vector<std::pair<std::string, std::string>> headers;  ///< as received, in order
  std::string body;                                          ///< without the framing of chunks
  std::vector<std::pair<std::string, std::string>> trailers;
  bool ended_by_close = false;  ///< True if the body had no length and ended with the connection

  /// Returns the values of all headers called `name`, in any letter case, joined by ", ". Returns
  /// an empty string if the response has none.
  std::string header(std::string_view name) const;
  bool has_header(std::string_view name) const;
};

/// A Client is one connection. Every call ends within the client's timeout.
/// Errors: Errc::timed_out. Errc::end_of_stream if the peer closed in an orderly way before the
/// end of the requested data. Errc::bad_input if the peer's bytes are not HTTP/1.1. System errors
/// such as ECONNRESET.
/// Threads: one at a time.
class Client {
 public:
  /// Connects to 127.0.0.1:`port`. Throws std::system_error if connecting fails, because no test
  /// can continue without a connection.
  explicit Client(std::uint16_t port, std::chrono::milliseconds timeout = default_timeout);
  explicit Client(const os::Address& server, std::chrono::milliseconds timeout = default_timeout);
  /// Connects to `server`, for tests in which connecting may fail.
  /// Returns: the client, or the kernel's error.
  static Result<Client> connect(const os::Address& server,
                                std::chrono::milliseconds timeout = default_timeout);
  /// Returns a client that has received `received` on a connection that has ended, for parsing
  /// these bytes.
  static Client from_bytes(std::string received);

  void set_timeout(std::chrono::milliseconds timeout) noexcept { timeout_ = timeout; }

  /// Sends all of `bytes`.
  Result<> send(std::string_view bytes);
  /// Sends as much of `bytes` as possible. It stops when the connection is broken, or when no
  /// byte could be sent within the timeout.
  /// Returns: the number of bytes sent.
  std::size_t send_some(std::string_view bytes);
  /// Sends `bytes` in pieces of `size` bytes, each in a segment of its own.
  Result<> send_in_pieces(std::string_view bytes, std::size_t size = 1);

  /// Ends sending (FIN) and continues to receive.
  void finish_sending();
  /// Aborts the connection (RST). The peer loses the bytes that it has not read.
  void reset();
  /// Closes the connection (FIN).
  void close();

  /// Reads one response, which may be an interim one (1xx), and leaves later bytes for the next
  /// call. `method` is the method of the request; a response to HEAD has no body.
  Result<Response> read(std::string_view method = "GET");
  /// Sends `request` and reads its final response, skipping interim ones.
  Result<Response> exchange(std::string_view request, std::string_view method = "GET");
  /// Sends `request` `count` times without waiting, and reads `count` responses.
  Result<std::vector<Response>> pipeline(std::string_view request, std::size_t count);

  /// Reads bytes until they end with `end`, and takes all of them.
  Result<std::string> read_until(std::string_view end);
  /// Reads all bytes up to the orderly end of the connection.
  Result<std::string> read_to_end();
  /// Waits for the peer's orderly end. Returns Errc::bad_input if the peer sends more bytes
  /// instead.
  Result<> expect_end();
  /// Returns the bytes that have arrived but are not read yet, without waiting for more. Tests
  /// use it to check that nothing has come.
  std::string unread();

  os::Address local_address() const;
  int descriptor() const noexcept { return socket_.get(); }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  Client() = default;
  Result<> open(const os::Address& server);
  Deadline deadline() const { return std::chrono::steady_clock::now() + timeout_; }
  Result<> wait(short events, Deadline until) const;
  Result<> send_while_receiving(std::string_view bytes);
  Result<> receive_more(Deadline until);
  std::string_view pending() const { return std::string_view(received_).substr(taken_); }
  void consume(std::size_t count);

  os::Fd socket_;
  std::chrono::milliseconds timeout_ = default_timeout;
  std::string received_;
  std::size_t taken_ = 0;  ///< number of received bytes that the caller has taken
};

/// Returns a GET request for `target` that keeps the connection open.
std::string get(std::string_view target);
/// Returns a POST request of `body` to `target` with a Content-Length.
std::string post(std::string_view target, std::string_view body);

}  // namespace weir::tests
