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

// Few enough that those which send byte by byte are done long before the server loses patience.
constexpr std::size_t connections_max = 120;

/// One job under way.
class Connection {
 public:
  Connection(std::uint16_t port, const WireJob& job, WireResult& result)
      : job_(job), result_(result), socket_(os::open_stream(os::AddressFamily::ipv4).value()) {
    os::start_connect(socket_.get(), os::Address::loopback(port)).value();
    pollfd connected{socket_.get(), POLLOUT, 0};
    ::poll(&connected, 1, -1);
    if (auto done = os::take_error(socket_.get()); !done) fail(done.error());
    (void)os::set_no_delay(socket_.get(), true);
  }

  bool open() const { return static_cast<bool>(socket_); }
  bool all_sent() const { return sent_ == job_.bytes.size(); }
  std::size_t last_piece() const { return last_piece_; }
  int descriptor() const { return socket_.get(); }

  void send_next_piece() {
    last_piece_ = 0;
    if (!open() || all_sent()) return;
    const std::size_t end = cut_ < job_.cuts.size() ? job_.cuts[cut_++] : job_.bytes.size();
    last_piece_ = end - sent_;
    std::string_view piece = job_.bytes.substr(sent_, end - sent_);
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (open() && !piece.empty()) {
      const auto count = ::send(socket_.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN) return fail(system_error(errno));
      if (count < 0 && std::chrono::steady_clock::now() > deadline) return fail(Errc::timed_out);
      if (count > 0) piece.remove_prefix(static_cast<std::size_t>(count));
      if (count < 0) receive();
    }
    sent_ = end;
  }

  /// Whether all that was sent has arrived at the server's socket.
  bool arrived() const { return !open() || os::unacknowledged(socket_.get()).value_or(0) == 0; }

  /// All that is here. At the server's end nothing more is sent either, as clients do.
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

  /// Everything is sent and answered. Who announced to end must do it without being told.
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
  const WireJob& job_;
  WireResult& result_;
  os::Fd socket_;
  std::size_t sent_ = 0;
  std::size_t cut_ = 0;
  std::size_t last_piece_ = 0;
  bool finished_ = false;
};

void wait_for_the_ends(std::vector<Connection>& connections) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
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

/// Asks somebody who takes turns with all of them: once for what fits a turn, which is some
/// kilobytes of each connection.
void let_the_server_read(const std::vector<Connection>& connections, Client& bystander) {
  std::size_t largest = 0;
  for (const Connection& each : connections) largest = std::max(largest, each.last_piece());
  for (std::size_t turn = 0; turn <= largest / 4096; ++turn) {
    bystander.exchange(get("/")).value();
  }
}

/// The same for the last pieces, whose answers must not come when this side has given up: they have
/// arrived, not only been sent.
void let_the_server_answer(const std::vector<Connection>& connections, Client& bystander) {
  const bool all =
      eventually([&] { return std::ranges::all_of(connections, &Connection::arrived); });
  if (!all) throw std::runtime_error("bytes do not arrive");
  let_the_server_read(connections, bystander);
  // That may have been in a turn whose look at the sockets had begun before. By the end of the next
  // one all are answered; the bystander may be the first of it, so only the one after that tells.
  for (int turn = 0; turn < 2; ++turn) bystander.exchange(get("/")).value();
}

}  // namespace

std::vector<WireResult> run_on_the_wire(std::uint16_t port, const std::vector<WireJob>& jobs) {
  std::vector<WireResult> results(jobs.size());
  // Those with as many pieces together: nobody waits for the last of a long one.
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t job) { return jobs[job].cuts.size(); });
  Client bystander(port);
  for (std::size_t first = 0; first < jobs.size(); first += connections_max) {
    std::vector<Connection> connections;
    connections.reserve(connections_max);
    for (std::size_t i = first; i < std::min(first + connections_max, jobs.size()); ++i) {
      connections.emplace_back(port, jobs[order[i]], results[order[i]]);
    }
    // The server accepts in order, some in each turn: with this one answered, it has all of them.
    Client(port).exchange(get("/")).value();
    const auto sending = [](const Connection& each) { return each.open() && !each.all_sent(); };
    while (std::ranges::any_of(connections, sending)) {
      for (Connection& each : connections) each.send_next_piece();
      let_the_server_read(connections, bystander);
      for (Connection& each : connections) each.receive();
    }
    let_the_server_answer(connections, bystander);
    for (Connection& each : connections) each.receive();
    for (Connection& each : connections) each.finish();
    wait_for_the_ends(connections);
  }
  return results;
}

Result<std::vector<Response>> read_responses(const std::string& received) {
  Client client = Client::of_bytes(received);
  std::vector<Response> responses;
  while (!client.unread().empty()) {
    auto response = client.read();
    if (!response) return fail(response.error());
    responses.push_back(std::move(*response));
  }
  return responses;
}

}  // namespace weir::tests
