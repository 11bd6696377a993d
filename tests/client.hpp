// An HTTP/1.1 client for tests: it sends any bytes, also wrong ones, and reads answers strictly.
// It shares no code with the library's own HTTP, so the two cannot be wrong in the same way.
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
  std::vector<std::pair<std::string, std::string>> fields;  ///< as they came, in order
  std::string body;                                         ///< without the chunks' framing
  std::vector<std::pair<std::string, std::string>> trailers;
  bool ended_by_close = false;  ///< the body had no length: the connection's end ended it

  /// The values of the fields called `name` (in any case), joined by ", "; empty where none is.
  std::string field(std::string_view name) const;
  bool has_field(std::string_view name) const;
};

/// One connection. Every call ends within the client's patience.
/// Errors: Errc::timed_out; Errc::end_of_stream when the peer has ended orderly in the middle (or
/// before) what was asked for; Errc::bad_input when what it sent is no HTTP/1.1; ECONNRESET and the
/// like. Threads: one at a time.
class Client {
 public:
  /// Connects to 127.0.0.1:`port`. Throws when that fails, as no test can go on without.
  explicit Client(std::uint16_t port, std::chrono::milliseconds longest = patience);
  explicit Client(const os::Address& server, std::chrono::milliseconds longest = patience);
  /// The same for one that may fail, with the kernel's reason.
  static Result<Client> connect(const os::Address& server,
                                std::chrono::milliseconds longest = patience);
  /// A connection that has ended, of which these bytes came: for reading them.
  static Client of_bytes(std::string received);

  void set_patience(std::chrono::milliseconds longest) noexcept { patience_ = longest; }

  /// Sends all of `bytes`.
  Result<> send(std::string_view bytes);
  /// Sends of `bytes` what goes, until nothing has gone for as long as its patience lasts or the
  /// connection is broken; says how many.
  std::size_t send_some(std::string_view bytes);
  /// Sends `bytes` in pieces of `size`, each in a segment of its own.
  Result<> send_in_pieces(std::string_view bytes, std::size_t size = 1);

  /// Ends sending (FIN) and goes on receiving.
  void finish_sending();
  /// Ends the connection at once (RST): the peer loses what it has not read.
  void reset();
  /// Ends the connection orderly.
  void close();

  /// Reads one response, interim ones (1xx) too, and leaves what follows for the next call.
  /// `method` is that of the request it answers: what HEAD asks for has no body.
  Result<Response> read(std::string_view method = "GET");
  /// Sends `request` and reads its final response, skipping interim ones.
  Result<Response> exchange(std::string_view request, std::string_view method = "GET");
  /// Sends `request` `count` times at once and reads as many responses.
  Result<std::vector<Response>> pipeline(std::string_view request, std::size_t count);

  /// All bytes up to the orderly end.
  Result<std::string> read_to_end();
  /// Waits for the peer's orderly end. Errc::bad_input when it sends more bytes instead.
  Result<> expect_end();
  /// The bytes that are here already but not read, without waiting for more; for tests that nothing
  /// has come yet.
  std::string unread();

  os::Address local_address() const;
  int descriptor() const noexcept { return socket_.get(); }

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  using Fields = std::vector<std::pair<std::string, std::string>>;

  Client() = default;
  Result<> open(const os::Address& server);
  Deadline deadline() const { return std::chrono::steady_clock::now() + patience_; }
  Result<> wait(short events, Deadline until) const;
  Result<> send_while_receiving(std::string_view bytes);
  Result<> receive_more(Deadline until);
  std::string_view pending() const { return std::string_view(received_).substr(taken_); }
  std::string consume(std::size_t count);
  Result<std::string> take(std::size_t count, Deadline until);
  Result<std::string> take_line(Deadline until);
  Result<Fields> take_fields(Deadline until);
  Result<> take_chunks(Response& response, Deadline until);
  Result<> take_body(Response& response, std::string_view method, Deadline until);

  os::Fd socket_;
  std::chrono::milliseconds patience_ = patience;
  std::string received_;
  std::size_t taken_ = 0;  ///< of those, given to the caller
};

/// A GET of `target` for a peer that keeps the connection open.
std::string get(std::string_view target);
/// A POST of `body` to `target` with its length.
std::string post(std::string_view target, std::string_view body);

}  // namespace weir::tests
