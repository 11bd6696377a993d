#include "tests/wire_runner.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <system_error>

#include "weir/os/address.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::tests {
namespace {

// This number is small enough for byte-by-byte connections to end long before the server's
// timeouts.
constexpr std::size_t connections_max = 120;

/// A Connection sends one input.
class Connection {
 public:
  Connection(std::uint16_t port, const WireInput& input, WireResult& result)
      : input_(input), result_(result), socket_(os::open_stream(os::AddressFamily::ipv4).value()) {
    os::start_connect(socket_.get(), os::Address::loopback(port)).value();
    pollfd connected{socket_.get(), POLLOUT, 0};
    ::poll(&connected, 1, -1);
    if (auto done = os::take_error(socket_.get()); !done) fail(done.error());
    (void)os::set_no_delay(socket_.get(), true);
  }

  bool open() const { return static_cast<bool>(socket_); }
  bool all_sent() const { return sent_ == input_.bytes.size(); }
  std::size_t last_piece() const { return last_piece_; }
  int descriptor() const { return socket_.get(); }

  void send_next_piece() {
    last_piece_ = 0;
    if (!open() || all_sent()) return;
    const std::size_t end = cut_ < input_.cuts.size() ? input_.cuts[cut_++] : input_.bytes.size();
    last_piece_ = end - sent_;
    std::string_view piece = input_.bytes.substr(sent_, end - sent_);
    const auto deadline = std::chrono::steady_clock::now() + default_timeout;
    while (open() && !piece.empty()) {
      const auto count = ::send(socket_.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN) return fail(system_error(errno));
      if (count < 0 && std::chrono::steady_clock::now() > deadline) return fail(Errc::timed_out);
      if (count > 0) piece.remove_prefix(static_cast<std::size_t>(count));
      if (count < 0) receive();
    }
    sent_ = end;
  }

  /// Returns true if the server's socket has received all that was sent.
  bool arrived() const { return !open() || os::unacked_bytes(socket_.get()).value_or(0) == 0; }

  /// Receives all available bytes. The client stops sending at the server's end, as clients do.
  void receive() {
    std::array<char, 16384> bytes;
    while (open()) {
      const auto count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (count > 0) {
        result_.received.append(bytes.data(), static_cast<std::size_t>(count));
      } else if (count == 0) {
        result_.server_ended = !finished_;
        if (!finished_) result_.before_end = result_.received.size();
        socket_.close();
      } else if (errno == EAGAIN) {
        return;
      } else {
        fail(system_error(errno));
      }
    }
  }

  /// Ends the sending after everything was sent and answered. A server that has announced the end
  /// must end without it.
  void finish() {
    if (!open() || result_.received.contains("\r\nConnection: close\r\n")) return;
    finished_ = true;
    result_.before_end = result_.received.size();
    (void)os::shut_down_sending(socket_.get());
  }

  void fail(std::error_code error) {
    result_.failure = error.message() + " after " + std::to_string(sent_) + " bytes";
    socket_.close();
  }

 private:
  const WireInput& input_;
  WireResult& result_;
  os::Fd socket_;
  std::size_t sent_ = 0;
  std::size_t cut_ = 0;
  std::size_t last_piece_ = 0;
  bool finished_ = false;
};

void wait_until_closed(std::vector<Connection>& connections) {
  const auto deadline = std::chrono::steady_clock::now() + default_timeout;
  for (;;) {
    std::vector<pollfd> wanted;
    for (const Connection& each : connections) {
      if (each.open()) wanted.push_back({each.descriptor(), POLLIN, 0});
    }
    if (wanted.empty()) return;
    ::poll(wanted.data(), wanted.size(), 1000);
    const bool late = std::chrono::steady_clock::now() > deadline;
    for (Connection& each : connections) {
      each.receive();
      if (late && each.open()) each.fail(Errc::timed_out);
    }
  }
}

/// Sends requests on the observer's connection, which takes turns with all others. One request
/// covers one turn, in which the server reads some kilobytes of each connection.
void wait_until_server_has_read(const std::vector<Connection>& connections, Client& observer) {
  std::size_t largest = 0;
  for (const Connection& each : connections) largest = std::max(largest, each.last_piece());
  for (std::size_t turn = 0; turn <= largest / 4096; ++turn) {
    observer.exchange(get("/")).value();
  }
}

/// Waits until the server has answered the last pieces, so that no answer comes after finish().
/// The pieces must have arrived at the server.
void wait_until_server_has_answered(const std::vector<Connection>& connections, Client& observer) {
  const bool all =
      eventually([&] { return std::ranges::all_of(connections, &Connection::arrived); });
  if (!all) throw std::runtime_error("the bytes did not arrive");
  wait_until_server_has_read(connections, observer);
  // The observer's answer may come from a turn that had polled the sockets too early. All are
  // answered by the end of the next turn. The observer may be first in that turn, so a second one
  // is needed.
  for (int turn = 0; turn < 2; ++turn) observer.exchange(get("/")).value();
}

}  // namespace

std::vector<WireResult> run_wire_inputs(std::uint16_t port, const std::vector<WireInput>& inputs) {
  std::vector<WireResult> results(inputs.size());
  // Inputs with the same number of pieces run together, so short inputs do not wait for long
  // ones.
  std::vector<std::size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t input) { return inputs[input].cuts.size(); });
  Client observer(port);
  for (std::size_t first = 0; first < inputs.size(); first += connections_max) {
    std::vector<Connection> connections;
    connections.reserve(connections_max);
    for (std::size_t i = first; i < std::min(first + connections_max, inputs.size()); ++i) {
      connections.emplace_back(port, inputs[order[i]], results[order[i]]);
    }
    // The server accepts in order, some connections in each turn. It has accepted all others when
    // it answers this one.
    Client(port).exchange(get("/")).value();
    const auto sending = [](const Connection& each) { return each.open() && !each.all_sent(); };
    while (std::ranges::any_of(connections, sending)) {
      for (Connection& each : connections) each.send_next_piece();
      wait_until_server_has_read(connections, observer);
      for (Connection& each : connections) each.receive();
    }
    wait_until_server_has_answered(connections, observer);
    for (Connection& each : connections) each.receive();
    for (Connection& each : connections) each.finish();
    wait_until_closed(connections);
  }
  return results;
}

Result<std::vector<Response>> read_responses(const std::string& received) {
  Client client = Client::from_bytes(received);
  std::vector<Response> responses;
  while (!client.unread().empty()) {
    WEIR_TRY(auto response, client.read());
    responses.push_back(std::move(response));
  }
  return responses;
}

}  // namespace weir::tests
