#include "weir/runtime/health_check.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/base/text/detail/printable.hpp"
#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir {
namespace {

constexpr std::size_t answer_bytes_max = 64 * 1024;

/// Waits until the socket has one of `events`.
Result<> wait_for(int socket, short events, Instant until) {
  for (;;) {
    const Instant now = os::monotonic_now();
    if (now >= until) return fail(system_error(ETIMEDOUT));
    pollfd waited{.fd = socket, .events = events, .revents = 0};
    const int ready = ::poll(&waited, 1, os::to_poll_timeout(until, now));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail(system_error(errno));
  }
}

bool would_block() noexcept {
  return errno == EAGAIN || errno == EINTR;
}

Result<> send_all(int socket, std::string_view bytes, Instant until) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (!would_block()) return fail(system_error(errno));
    WEIR_TRY(wait_for(socket, POLLOUT, until));
  }
  return {};
}

/// Connects to `peer`, sends `request`, and reads until the peer ends the stream.
/// Errors: the kernel's; ETIMEDOUT after `limit`.
Result<std::string> exchange(const Endpoint& peer, std::string_view request, Duration limit) {
  const Instant until = after(os::monotonic_now(), limit);
  WEIR_TRY(const os::Fd socket, os::open_stream(peer.family()));
  WEIR_TRY(const os::ConnectState state, os::start_connect(socket.get(), peer));
  if (state == os::ConnectState::in_progress) {
    WEIR_TRY(wait_for(socket.get(), POLLOUT, until));
    WEIR_TRY(os::take_error(socket.get()));
  }
  WEIR_TRY(send_all(socket.get(), request, until));
  std::string received;
  std::array<char, 4096> room;
  while (received.size() < answer_bytes_max) {
    const ssize_t count = ::recv(socket.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (count == 0) break;
    if (count > 0) {
      received.append(room.data(), static_cast<std::size_t>(count));
      continue;
    }
    if (!would_block()) return fail(system_error(errno));
    WEIR_TRY(wait_for(socket.get(), POLLIN, until));
  }
  return received;
}

/// Returns an endpoint to connect to.
Endpoint to_peer(const Endpoint& endpoint) {
  return endpoint.is_any() ? Endpoint::loopback(endpoint.port()) : endpoint;
}

/// Returns the first line of the body, at most 500 bytes of it.
std::string_view first_line(std::string_view response) {
  const std::size_t end = response.find("\r\n\r\n");
  if (end == response.npos) return {};
  const std::string_view body = response.substr(end + 4);
  return body.substr(0, std::min<std::size_t>(body.find_first_of("\r\n"), 500));
}

/// Returns the status code of a response; empty if the bytes are none of HTTP/1.1.
std::string_view status_of(std::string_view response) {
  constexpr std::string_view version = "HTTP/1.1 ";
  if (!response.starts_with(version)) return {};
  const std::string_view status = response.substr(version.size(), 3);
  const auto is_digit = [](char each) { return each >= '0' && each <= '9'; };
  return status.size() == 3 && std::ranges::all_of(status, is_digit) ? status : std::string_view();
}

}  // namespace

HealthAnswer ask_health(const Endpoint& endpoint, const std::string& path, Duration limit) {
  const Endpoint peer = to_peer(endpoint);
  const std::string host = peer.is_inet() ? peer.to_string() : "localhost";
  const auto received = exchange(
      peer, "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n", limit);
  if (!received) return {false, peer.to_string() + ": " + received.error().message()};
  const std::string status(status_of(*received));
  if (status.empty()) return {false, peer.to_string() + ": this is not a plain HTTP server"};
  std::string text = status + ": " + to_printable(first_line(*received));
  if (status == "404") text = "404: the server has no route " + path + "; see http::Health";
  return {status == "200", std::move(text)};
}

int run_health_check(const Endpoint& endpoint) {
  const HealthAnswer answer = ask_health(endpoint);
  std::printf("%s\n", answer.text.c_str());
  return answer.ready ? 0 : 1;
}

}  // namespace weir
