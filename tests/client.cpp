// The test client has a socket, one buffer, and a parser that rejects what RFC 9112 does not
// allow.
#include "tests/client.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>

#include "weir/os/detail/io/socket.hpp"

namespace weir::tests {
namespace {

constexpr std::size_t line_max = 64 * 1024;
constexpr std::size_t headers_max = 1000;

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool same(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, lower, lower);
}

bool is_token(std::string_view text) {
  static constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  const auto allowed = [](char each) {
    return (each >= '0' && each <= '9') || (lower(each) >= 'a' && lower(each) <= 'z') ||
           marks.contains(each);
  };
  return !text.empty() && std::ranges::all_of(text, allowed);
}

std::optional<std::uint64_t> read_number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Parses `HTTP/1.1 200 OK`. The reason may be empty, but the space before it is required.
bool read_status_line(std::string_view line, Response& response) {
  if (!line.starts_with("HTTP/1.1 ") || line.size() < 13 || line[12] != ' ') return false;
  const auto status = read_number(line.substr(9, 3), 10);
  if (!status || *status < 100) return false;
  response.status = static_cast<int>(*status);
  response.reason = line.substr(13);
  return true;
}

[[noreturn]] void give_up(std::error_code error, const os::Address& server) {
  throw std::system_error(error, "cannot connect to " + server.to_string());
}

}  // namespace

std::string Response::header(std::string_view name) const {
  std::string joined;
  bool first = true;
  for (const auto& [each, value] : headers) {
    if (!same(each, name)) continue;
    joined += (first ? "" : ", ") + value;
    first = false;
  }
  return joined;
}

bool Response::has_header(std::string_view name) const {
  return std::ranges::any_of(headers, [&](const auto& header) { return same(header.first, name); });
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

Result<std::string> Client::take(std::size_t count, Deadline until) {
  while (pending().size() < count) {
    WEIR_TRY(receive_more(until));
  }
  return consume(count);
}

/// Takes a line and its CRLF, and returns the line. A bare CR or LF is an error.
Result<std::string> Client::take_line(Deadline until) {
  std::size_t scanned = 0;
  for (;;) {
    const std::string_view bytes = pending();
    const auto end = std::min(bytes.find_first_of("\r\n", scanned), bytes.size());
    if (end < bytes.size() && bytes[end] == '\n') return fail(Errc::bad_input);
    if (end + 1 < bytes.size()) {
      if (bytes[end + 1] != '\n') return fail(Errc::bad_input);
      std::string line = consume(end + 2);
      line.resize(end);
      return line;
    }
    if (end > line_max) return fail(Errc::bad_input);
    scanned = end;
    WEIR_TRY(receive_more(until));
  }
}

std::string Client::consume(std::size_t count) {
  std::string bytes(pending().substr(0, count));
  taken_ += count;
  // Moving the rest to the front for every answer would make long pipelines slow.
  constexpr std::size_t taken_max = 1 << 20;
  if (taken_ == received_.size() || taken_ > taken_max) {
    received_.erase(0, taken_);
    taken_ = 0;
  }
  return bytes;
}

Result<Client::Headers> Client::take_headers(Deadline until) {
  Headers headers;
  for (;;) {
    WEIR_TRY(const auto line, take_line(until));
    if (line.empty()) return headers;
    const auto colon = line.find(':');
    if (colon == line.npos || headers.size() == headers_max) return fail(Errc::bad_input);
    std::string name = line.substr(0, colon);
    if (!is_token(name)) return fail(Errc::bad_input);
    headers.emplace_back(std::move(name), trimmed(std::string_view(line).substr(colon + 1)));
  }
}

Result<> Client::take_chunks(Response& response, Deadline until) {
  for (;;) {
    WEIR_TRY(const auto line, take_line(until));
    const auto size = read_number(std::string_view(line).substr(0, line.find(';')), 16);
    if (!size) return fail(Errc::bad_input);
    if (*size == 0) break;
    WEIR_TRY(const auto bytes, take(*size, until));
    response.body += bytes;
    WEIR_TRY(const auto end, take_line(until));
    if (!end.empty()) return fail(Errc::bad_input);
  }
  WEIR_TRY(auto trailers, take_headers(until));
  response.trailers = std::move(trailers);
  return {};
}

/// RFC 9112, section 6.3.
Result<> Client::take_body(Response& response, std::string_view method, Deadline until) {
  const bool chunked = response.has_header("Transfer-Encoding");
  const bool counted = response.has_header("Content-Length");
  const bool bodiless = response.status < 200 || response.status == 204;
  if (bodiless && (chunked || counted)) return fail(Errc::bad_input);
  if (bodiless || response.status == 304 || method == "HEAD") return {};
  if (chunked) {
    const bool known = same(response.header("Transfer-Encoding"), "chunked");
    if (!known || counted) return fail(Errc::bad_input);
    return take_chunks(response, until);
  }
  if (counted) {
    const auto length = read_number(response.header("Content-Length"), 10);
    if (!length) return fail(Errc::bad_input);
    WEIR_TRY(auto bytes, take(*length, until));
    response.body = std::move(bytes);
    return {};
  }
  WEIR_TRY(auto rest, read_to_end());
  response.body = std::move(rest);
  response.ended_by_close = true;
  return {};
}

Result<Response> Client::read(std::string_view method) {
  const Deadline until = deadline();
  Response response;
  WEIR_TRY(const auto line, take_line(until));
  if (!read_status_line(line, response)) return fail(Errc::bad_input);
  WEIR_TRY(auto headers, take_headers(until));
  response.headers = std::move(headers);
  WEIR_TRY(take_body(response, method, until));
  return response;
}

Result<Response> Client::exchange(std::string_view request, std::string_view method) {
  WEIR_TRY(send(request));
  auto response = read(method);
  while (response && response->status < 200 && response->status != 101) response = read(method);
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

Result<std::string> Client::read_to_end() {
  const Deadline until = deadline();
  for (;;) {
    const auto more = receive_more(until);
    if (more) continue;
    if (more.error() != Errc::end_of_stream) return fail(more.error());
    return consume(pending().size());
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
