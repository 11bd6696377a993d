// The test client has a socket and one buffer.
#include "tests/client.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "weir/http/detail/h1/response_parser.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::tests {
namespace {

http::ResponseLimits limits_of_tests() noexcept {
  http::ResponseLimits limits;
  limits.head.request_line_max = 64 * 1024;
  limits.head.headers_bytes_max = 1024 * 1024;
  return limits;
}

/// Stores a head in `response`. Returns false for what the parser accepts and no Weir server sends:
/// another version than HTTP/1.1, a status line without the space before the reason, and a length
/// in a response that has no body.
bool store_head(const http::ReceivedResponseHead& head, Response& response) {
  constexpr std::size_t reason_at = std::string_view("HTTP/1.1 200 ").size();
  const std::string_view line = head.bytes().substr(0, head.bytes().find("\r\n"));
  if (!line.starts_with("HTTP/1.1 ") || line.size() < reason_at) return false;
  response.status = http::code_of(head.status());
  response.reason = line.substr(reason_at);
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const http::HeaderField field = head.header_at(index);
    response.headers.emplace_back(field.name, field.value);
  }
  const bool bodiless = response.status < 200 || response.status == 204;
  return !bodiless || (!head.chunked() && !head.has_content_length());
}

[[noreturn]] void give_up(std::error_code error, const os::Address& server) {
  throw std::system_error(error, "cannot connect to " + server.to_string());
}

}  // namespace

std::string Response::header(std::string_view name) const {
  std::string joined;
  bool first = true;
  for (const auto& [each, value] : headers) {
    if (!http::equals_ignoring_case(each, name)) continue;
    joined += (first ? "" : ", ") + value;
    first = false;
  }
  return joined;
}

bool Response::has_header(std::string_view name) const {
  return std::ranges::any_of(
      headers, [&](const auto& header) { return http::equals_ignoring_case(header.first, name); });
}

Client::Client(std::uint16_t port, std::chrono::milliseconds timeout)
    : Client(os::Address::loopback(port), timeout) {}

Client::Client(const os::Address& server, std::chrono::milliseconds timeout) : timeout_(timeout) {
  if (const auto done = open(server); !done) give_up(done.error(), server);
}

Result<Client> Client::connect(const os::Address& server, std::chrono::milliseconds timeout) {
  Client client;
  client.timeout_ = timeout;
  WEIR_TRY(client.open(server));
  return client;
}

Client Client::from_bytes(std::string received) {
  Client client;
  client.received_ = std::move(received);
  return client;
}

Result<> Client::open(const os::Address& server) {
  auto socket = os::open_stream(server.family());
  if (!socket) return fail(socket.error());
  socket_ = std::move(*socket);
  WEIR_TRY(os::start_connect(socket_.get(), server));
  if (auto done = wait(POLLOUT, deadline()); !done) return done;
  if (auto done = os::take_error(socket_.get()); !done) return done;
  // Pieces must leave as they are sent; a Unix socket has no such option and needs none.
  if (server.is_inet()) (void)os::set_no_delay(socket_.get(), true);
  return {};
}

Result<> Client::wait(short events, Deadline until) const {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    // Bytes that have arrived count, even if this process checks after the deadline.
    pollfd wanted{socket_.get(), events, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail(system_error(errno));
    if (left.count() <= 0) return fail(Errc::timed_out);
  }
}

Result<> Client::send(std::string_view bytes) {
  const Deadline until = deadline();
  while (!bytes.empty()) {
    const auto count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      if (auto ready = wait(POLLOUT, until); !ready) return ready;
    } else if (errno != EINTR) {
      return fail(system_error(errno));
    }
  }
  return {};
}

std::size_t Client::send_some(std::string_view bytes) {
  const std::size_t all = bytes.size();
  while (!bytes.empty()) {
    const auto count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EAGAIN || !wait(POLLOUT, deadline())) {
      break;
    }
  }
  return all - bytes.size();
}

Result<> Client::send_in_pieces(std::string_view bytes, std::size_t size) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, size);
    if (auto sent = send(piece); !sent) return sent;
    bytes.remove_prefix(piece.size());
  }
  return {};
}

/// Receives while it sends, because a server that answers as it reads stops reading if the client
/// does not read the answers.
Result<> Client::send_while_receiving(std::string_view bytes) {
  const Deadline until = deadline();
  short events = POLLIN | POLLOUT;
  while (!bytes.empty()) {
    const auto count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno != EAGAIN) return fail(system_error(errno));
    if (auto ready = wait(events, until); !ready) return ready;
    const std::size_t before = received_.size();
    unread();
    // The kernel reports the socket as readable forever at the end of the stream.
    if (received_.size() == before) events = POLLOUT;
  }
  return {};
}

void Client::finish_sending() {
  (void)os::shut_down_sending(socket_.get());
}

void Client::reset() {
  (void)os::set_linger(socket_.get(), std::chrono::seconds(0));
  close();
}

void Client::close() {
  socket_.close();
  received_.clear();
  taken_ = 0;
}

Result<> Client::receive_more(Deadline until) {
  if (!socket_) return fail(Errc::end_of_stream);
  std::array<char, 65536> bytes;
  for (;;) {
    const auto count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count > 0) {
      received_.append(bytes.data(), static_cast<std::size_t>(count));
      return {};
    }
    if (count == 0) return fail(Errc::end_of_stream);
    if (errno == EAGAIN) {
      if (auto ready = wait(POLLIN, until); !ready) return ready;
    } else if (errno != EINTR) {
      return fail(system_error(errno));
    }
  }
}

void Client::consume(std::size_t count) {
  taken_ += count;
  // Moving the rest to the front for every answer would make long pipelines slow.
  constexpr std::size_t taken_max = 1 << 20;
  if (taken_ == received_.size() || taken_ > taken_max) {
    received_.erase(0, taken_);
    taken_ = 0;
  }
}

Result<Response> Client::read(std::string_view method) {
  using Kind = http::ResponseEvent::Kind;
  const Deadline until = deadline();
  http::ResponseParser parser(limits_of_tests());
  parser.begin(method == "HEAD" ? http::Method::head : http::Method::get);
  Response response;
  while (true) {
    const http::ResponseEvent event = parser.next(pending());
    const bool has_head = event.kind == Kind::head || event.kind == Kind::interim;
    if (has_head && !store_head(parser.head(), response)) return fail(Errc::bad_input);
    response.body += event.data;
    consume(event.consumed);
    if (event.kind == Kind::error) return fail(Errc::bad_input);
    if (event.kind == Kind::interim) return response;
    if (event.kind == Kind::end) break;
    if (event.kind != Kind::need_more) continue;
    const Result<> more = receive_more(until);
    if (more) continue;
    const bool ended = more.error() == Errc::end_of_stream && parser.finish_at_close();
    if (!ended) return fail(more.error());
    response.ended_by_close = true;
    break;
  }
  for (const http::HeaderField field : parser.trailers()) {
    response.trailers.emplace_back(field.name, field.value);
  }
  return response;
}

Result<Response> Client::exchange(std::string_view request, std::string_view method) {
  WEIR_TRY(send(request));
  auto response = read(method);
  while (response && response->status < 200) response = read(method);
  return response;
}

Result<std::vector<Response>> Client::pipeline(std::string_view request, std::size_t count) {
  std::string batch;
  batch.reserve(request.size() * count);
  for (std::size_t i = 0; i < count; ++i) batch += request;
  WEIR_TRY(send_while_receiving(batch));
  std::vector<Response> responses;
  for (std::size_t i = 0; i < count; ++i) {
    WEIR_TRY(auto response, read());
    responses.push_back(std::move(response));
  }
  return responses;
}

Result<std::string> Client::read_until(std::string_view end) {
  const Deadline until = deadline();
  while (!pending().ends_with(end)) WEIR_TRY(receive_more(until));
  std::string bytes(pending());
  consume(bytes.size());
  return bytes;
}

Result<std::string> Client::read_to_end() {
  const Deadline until = deadline();
  for (;;) {
    const auto more = receive_more(until);
    if (more) continue;
    if (more.error() != Errc::end_of_stream) return fail(more.error());
    std::string bytes(pending());
    consume(bytes.size());
    return bytes;
  }
}

Result<> Client::expect_end() {
  WEIR_TRY(const auto rest, read_to_end());
  if (!rest.empty()) return fail(Errc::bad_input);
  return {};
}

std::string Client::unread() {
  std::array<char, 65536> bytes;
  for (;;) {
    const auto count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count <= 0) return std::string(pending());
    received_.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

os::Address Client::local_address() const {
  return os::local_address(socket_.get()).value();
}

std::string get(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

std::string post(std::string_view target, std::string_view body) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

}  // namespace weir::tests
