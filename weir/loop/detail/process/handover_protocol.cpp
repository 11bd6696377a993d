// The two sides of a hot restart: the process that takes over and the process that hands over.
#include "weir/loop/detail/process/handover_protocol.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/os/detail/io/seqpacket_socket.hpp"

namespace weir::loop {
namespace {

using namespace std::chrono_literals;

// Time for an answer that needs only the other process' thread.
constexpr Duration answer_timeout = 5s;
// Time for the receipt of an offer, which a newer process sends immediately. A process that does
// not send it keeps other newer processes waiting for no longer.
constexpr Duration receipt_timeout = 2s;
// Time that an older process waits until its own cores release its sockets. A core that is busy
// for longer may still accept, in parallel with the newer process.
constexpr Duration stop_timeout = 1s;
// Attempts if older processes end just before they would have answered.
constexpr int tries_max = 5;

}  // namespace

std::string HandoverProtocol::begin() {
  const bool valid_name = handover_text(options_.service) == options_.service;
  const std::string failure =
      valid_name ? open_endpoint() : "the service's name is longer than 255 bytes or not printable";
  return failure.empty() ? failure : takeover_error_prefix(options_) + failure;
}

std::string HandoverProtocol::open_endpoint() {
  for (int tries = 0; tries < tries_max; ++tries) {
    auto met = endpoint_.connect_or_listen();
    if (!met) return met.error().message();
    older_ = std::move(*met);
    if (older_ == nullptr) return {};
    bool gone = false;
    std::string failure = request_sockets(gone);
    if (!gone) return failure;
    older_.reset();
    taken_.clear();
    endpoint_.close();
  }
  return "each older process at this path ended before it answered";
}

/// Requests the sockets of the older process and takes those that it offers. Sets `gone` if it has
/// ended before.
std::string HandoverProtocol::request_sockets(bool& gone) {
  if (std::string why = older_->peer_rejection_reason(); !why.empty()) return why;
  gone = !older_->send({.kind = Kind::request, .text = options_.service});
  if (gone) return {};
  do {
    const ReceiveResult received =
        older_->receive_uninterrupted(deadline_after(options_.ready_timeout));
    gone = received == ReceiveResult::closed;
    if (gone) return {};
    if (!older_->is_message(received, Kind::offer)) {
      return "no sockets from the older process: " + describe(received, older_->message());
    }
    if (std::string failure = receive_sockets(); !failure.empty()) return failure;
  } while (!older_->message().last);
  if (!endpoint_.socket()) return "the older process did not send its rendezvous socket";
  taken_state_ = older_->take_state();
  // If the older process has just gone, the next wait for it reports that.
  static_cast<void>(older_->send({.kind = Kind::received}));
  return {};
}

std::string HandoverProtocol::receive_sockets() {
  std::vector<Descriptor> sockets = older_->take_sockets();
  for (std::size_t index = 0; index < sockets.size(); ++index) {
    const HandoverMessage::Socket& socket = older_->message().sockets[index];
    if (socket.use == HandoverMessage::Use::rendezvous) {
      endpoint_.set_socket(std::move(sockets[index]));
      continue;
    }
    auto inherited = platform_.inherit_listener(sockets[index].release());
    if (!inherited) {
      return "the older process sent a socket for " + socket.address +
             " that cannot be used: " + inherited.error().message();
    }
    const auto bound = platform_.local_address(inherited->value());
    if (!bound) return bound.error().message();
    auto listener = std::make_shared<SharedListener>(platform_, std::move(*inherited), *bound);
    if (socket.externally_owned) listener->set_externally_owned();
    listener->set_peer_waits_for_accept();
    taken_.push_back(std::move(listener));
  }
  return {};
}

void HandoverProtocol::on_accepting() noexcept {
  // release: the thread sees everything that was done before.
  accepting_.store(true, std::memory_order_release);
  endpoint_.notify();
}

void HandoverProtocol::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  endpoint_.notify();
}

void HandoverProtocol::run(HandoverDelegate& delegate) {
  delegate_ = &delegate;
  const bool is_owner = older_ == nullptr || take_over();
  older_.reset();
  if (is_owner) serve_newer_processes();
  endpoint_.close();
}

HandoverConnection::ReceiveResult HandoverProtocol::receive_unless_stopping(
    HandoverConnection& connection, Instant until) {
  ReceiveResult received = ReceiveResult::interrupted;
  while (received == ReceiveResult::interrupted && !stopping())
    received = connection.receive(until);
  return received;
}

// --- the newer process ---------------------------------------------------------------------------

/// Returns true if the sockets belong to this process now.
bool HandoverProtocol::take_over() {
  if (!wait_until_accepting()) return false;
  if (!delegate_->prepare_ownership()) {
    older_->reject("the newer process is shutting down");
    return false;
  }
  if (!wait_for_transfer()) return false;
  endpoint_.take_ownership();
  delegate_->on_owned();
  // Wait until the older process reports that it has stopped, or has gone. If neither arrives, it
  // is stuck and accepts almost nothing.
  static_cast<void>(receive_unless_stopping(*older_, deadline_after(answer_timeout)));
  if (!stopping()) delegate_->on_taken_over();
  return true;
}

bool HandoverProtocol::wait_until_accepting() {
  // The rest of the process usually needs only a moment. A log line gives the reason of a longer
  // wait.
  constexpr Duration usual = 1s;
  const Instant end = deadline_after(options_.ready_timeout);
  Instant until = std::min(end, deadline_after(usual));
  for (;;) {
    if (stopping()) return false;
    if (accepting_.load(std::memory_order_acquire)) return true;
    const ReceiveResult received = older_->receive(until);
    if (received == ReceiveResult::interrupted) continue;
    if (received == ReceiveResult::closed) {
      log("hot restart: the older process ended: taking over its sockets");
      return true;
    }
    if (received != ReceiveResult::timed_out) {
      return abort_takeover("from the older process: " + describe(received, older_->message()));
    }
    std::string awaited = delegate_->unaccepted_addresses();
    if (awaited.empty()) awaited = "every core";
    if (until == end) {
      return abort_takeover("not ready in time: this process does not accept on " + awaited +
                            ", where the older process listens");
    }
    log("hot restart: waiting until this process accepts on " + awaited);
    until = end;
  }
}

/// Waits for the older process' message that the sockets are this process' own. If the older
/// process has gone, no other process accepts, so this one takes over.
bool HandoverProtocol::wait_for_transfer() {
  if (!older_->send({.kind = Kind::ready})) return true;
  ReceiveResult received = older_->receive_uninterrupted(deadline_after(answer_timeout));
  if (received == ReceiveResult::timed_out) {
    // The older process must not send `transferred` later, when no process receives it.
    older_->shut_down_receiving();
    received = older_->receive_uninterrupted(deadline_after(0s));
    if (received == ReceiveResult::closed) received = ReceiveResult::timed_out;
  }
  if (received == ReceiveResult::closed) return true;
  if (!older_->is_message(received, Kind::transferred)) {
    return abort_takeover("from the older process: " + describe(received, older_->message()));
  }
  return true;
}

bool HandoverProtocol::abort_takeover(std::string why) {
  older_->reject(why);
  older_.reset();
  delegate_->on_takeover_failed("hot restart failed: " + std::move(why));
  return false;
}

// --- the older process ---------------------------------------------------------------------------

void HandoverProtocol::serve_newer_processes() {
  while (!stopping() && !accepting_.load(std::memory_order_acquire)) {
    static_cast<void>(endpoint_.wait(never));
  }
  if (stopping()) return;
  log("a newer process can take over at " + endpoint_.name());
  while (!stopping()) {
    if (const auto newer = endpoint_.accept_newer(); newer != nullptr && hand_over(*newer)) return;
  }
}

bool HandoverProtocol::hand_over(HandoverConnection& newer) {
  if (!check_request(newer)) return false;
  HandoverDelegate::Sockets sockets = delegate_->sockets_to_offer();
  if (!offer(newer, sockets)) {
    delegate_->on_handover_failed(sockets);
    return false;
  }
  endpoint_.drop_ownership();  // the newer process owns it from now on
  delegate_->on_handed_over();
  wait_until_stopped(sockets);
  sockets.clear();  // this process must not keep them open while it drains
  static_cast<void>(newer.send({.kind = Kind::stopped}));
  return true;
}

/// Returns true if the request comes from a newer process of this service.
bool HandoverProtocol::check_request(HandoverConnection& newer) {
  if (!newer.peer_rejection_reason().empty()) {
    log("hot restart rejected: a process of another user connected at " + endpoint_.name());
    newer.reject("processes of this user may not take over");
    return false;
  }
  const ReceiveResult received = receive_unless_stopping(newer, deadline_after(answer_timeout));
  if (newer.is_message(received, Kind::request) && newer.message().text == options_.service)
    return true;
  if (received == ReceiveResult::closed) return false;
  if (newer.is_message(received, Kind::request)) {
    log("hot restart rejected: a process of the service '" + newer.message().text + "' connected");
    newer.reject("this is the service '" + options_.service + "'");
  } else if (stopping()) {
    newer.reject("the older process is shutting down");
  } else {
    log("hot restart rejected at " + endpoint_.name() + ": " + describe(received, newer.message()));
    newer.reject(received == ReceiveResult::version_mismatch
                     ? "this process uses protocol version " +
                           std::to_string(HandoverMessage::version)
                     : "not a request");
  }
  return false;
}

/// Returns true if the newer process has the sockets and has been notified.
bool HandoverProtocol::offer(HandoverConnection& newer, const HandoverDelegate::Sockets& sockets) {
  if (sockets.empty()) {
    newer.reject("the older process does not listen");
    return false;
  }
  if (!send_sockets(newer, sockets)) return false;
  ReceiveResult received = receive_unless_stopping(newer, deadline_after(receipt_timeout));
  if (newer.is_message(received, Kind::received)) {
    received =
        receive_unless_stopping(newer, deadline_after(options_.ready_timeout + answer_timeout));
  }
  if (!stopping() && !newer.is_message(received, Kind::ready)) {
    log("a newer process did not take over (" + describe(received, newer.message()) +
        "): this process continues");
    newer.reject("the newer process was not ready in time");
    return false;
  }
  if (stopping() || !delegate_->confirm_handover(sockets)) {
    newer.reject("the older process is shutting down");
    return false;
  }
  if (auto sent = newer.send({.kind = Kind::transferred}); !sent) {
    log("a newer process did not take over (connection closed): this process continues");
    return false;
  }
  return true;
}

bool HandoverProtocol::send_sockets(HandoverConnection& newer,
                                    const HandoverDelegate::Sockets& sockets) {
  std::vector<HandoverMessage::Socket> all;
  std::vector<int> descriptors;
  for (const auto& each : sockets) {
    all.push_back({HandoverMessage::Use::listening, each->externally_owned(),
                   handover_text(each->bound().to_string())});
    descriptors.push_back(each->descriptor());
  }
  all.push_back({HandoverMessage::Use::rendezvous, false, handover_text(endpoint_.name())});
  descriptors.push_back(endpoint_.socket().value());
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t count = std::min(all.size() - begin, os::message_descriptors_max);
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    HandoverMessage message{.kind = Kind::offer};
    message.sockets.assign(first, first + static_cast<std::ptrdiff_t>(count));
    message.last = begin + count == all.size();
    if (message.last) message.state = delegate_->state_to_offer();
    const auto sent = newer.send(message, std::span(descriptors).subspan(begin, count));
    ::explicit_bzero(message.state.data(), message.state.size());
    if (!sent) {
      log("hot restart failed: cannot send the sockets: " + sent.error().message());
      return false;
    }
    begin += count;
  }
  return true;
}

void HandoverProtocol::wait_until_stopped(const HandoverDelegate::Sockets& sockets) {
  const Instant until = deadline_after(stop_timeout);
  const auto accepting = [](const auto& each) { return each->accepting(); };
  while (std::ranges::any_of(sockets, accepting)) {
    if (!endpoint_.wait(until)) return;
  }
}

}  // namespace weir::loop
