#include "weir/loop/os_handover.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/shared_listener.hpp"
#include "weir/os/socket.hpp"

namespace weir {
namespace {

using namespace std::chrono_literals;

// What the other process needs but its thread for.
constexpr Duration answer_within = 5s;
// How long an older process waits for a core of its own to let go of its sockets. A core that is
// busy for longer still may accept: the newer process goes on beside it.
constexpr Duration stop_within = 1s;
// Where an older process has gone just before it would have answered.
constexpr int tries_max = 5;

}  // namespace

OsHandover::OsHandover(Host& host, const HandoverOptions& options, const os::Address& place,
                       os::Fd event)
    : host_(host), options_(options), place_(place), event_(std::move(event)) {}

OsHandover::~OsHandover() {
  stop();
  thread_.reset();
  leave_place();
}

HandoverStart OsHandover::meet(Host& host, const HandoverOptions& options) {
  const std::string cannot = "cannot take sockets over at '" + options.path + "': ";
  const auto place = os::Address::local(options.path);
  if (!place) return {nullptr, cannot + "a path of 1 to 107 bytes is needed"};
  if (handover_text(options.service) != options.service) {
    return {nullptr, cannot + "the service's name is longer than 255 bytes or not printable"};
  }
  auto event = os::open_event();
  if (!event) return {nullptr, cannot + event.error().message()};
  std::unique_ptr<OsHandover> handover(new OsHandover(host, options, *place, std::move(*event)));
  std::string failure = handover->find_place();
  if (!failure.empty()) return {nullptr, cannot + failure};
  return {std::move(handover), {}};
}

std::string OsHandover::find_place() {
  for (int tries = 0; tries < tries_max; ++tries) {
    auto met = os::meet_at(place_);
    if (!met) return met.error().message();
    if (met->listener) {
      listener_ = std::move(met->listener);
      file_ = met->file;
      return {};
    }
    older_file_ = met->file;
    bool gone = false;
    std::string failure = ask(std::move(met->connection), gone);
    if (!gone) return failure;
  }
  return "processes begin and end there all the time";
}

/// Asks the older process, and takes what it offers. `gone`: it has ended before that.
std::string OsHandover::ask(os::Fd connection, bool& gone) {
  const auto user = os::peer_user(connection.get());
  if (!user) return user.error().message();
  if (*user != os::own_user() && *user != 0) {
    return "the process there belongs to user " + std::to_string(*user);
  }
  older_.emplace(std::move(connection), event_.get());
  if (!older_->say({.kind = Kind::ask, .text = options_.service})) {
    older_.reset();
    gone = true;
    return {};
  }
  do {
    const Heard heard = older_->hear_undisturbed(in(options_.ready_within));
    gone = heard == Heard::end;
    if (gone) break;
    if (!older_->says(heard, Kind::offer)) {
      return "an older process is there, but " + describe(heard, older_->message());
    }
    if (std::string failure = take_offer(); !failure.empty()) return failure;
  } while (!older_->message().last);
  if (gone) {
    older_.reset();
    taken_.clear();
    listener_.close();
    return {};
  }
  if (!listener_) return "an older process is there, but does not give up its place";
  return {};
}

std::string OsHandover::take_offer() {
  std::vector<os::Fd> descriptors = older_->take_descriptors();
  for (std::size_t index = 0; index < descriptors.size(); ++index) {
    const HandoverMessage::Socket& socket = older_->message().sockets[index];
    if (socket.use == HandoverMessage::Use::meeting) {
      listener_ = std::move(descriptors[index]);
      continue;
    }
    auto inherited = host_.inherit_listener(descriptors[index].release());
    if (!inherited) {
      return "what the older process gives for " + socket.address +
             " cannot be used: " + inherited.error().message();
    }
    const auto bound = host_.local_address(inherited->value());
    if (!bound) return bound.error().message();
    auto listener = std::make_shared<SharedListener>(host_, std::move(*inherited), *bound);
    if (socket.held) listener->set_held();
    listener->set_awaited();
    taken_.push_back(std::move(listener));
  }
  return {};
}

Result<> OsHandover::start(HandoverParty& party) {
  party_ = &party;
  thread_ = host_.make_thread({.name = "weir-restart"}, *this);
  return thread_->start();
}

void OsHandover::accepting() noexcept {
  // release: the thread sees what was done before.
  accepting_.store(true, std::memory_order_release);
  os::signal_event(event_.get());
}

void OsHandover::stopped_one() noexcept {
  os::signal_event(event_.get());
}

void OsHandover::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  os::signal_event(event_.get());
}

std::optional<Instant> OsHandover::step() noexcept {
  const bool ours = !older_ || take_over();
  older_.reset();
  if (ours) serve_newer_ones();
  leave_place();
  return std::nullopt;
}

// --- the newer process ---------------------------------------------------------------------------

/// Whether the sockets are this process' now.
bool OsHandover::take_over() {
  if (!wait_until_accepting()) return false;
  if (!party_->ready()) {
    older_->refuse("it ends");
    return false;
  }
  if (!wait_for_the_word()) return false;
  file_ = std::exchange(older_file_, std::nullopt);
  party_->owned();
  wait_until_the_older_stops();
  if (!stopping()) party_->taken_over();
  return true;
}

bool OsHandover::wait_until_accepting() {
  // It takes the rest of the process a moment only; whoever watches it wants to know for what.
  constexpr Duration usual = 1s;
  const Instant end = in(options_.ready_within);
  Instant until = std::min(end, in(usual));
  for (;;) {
    if (stopping()) return false;
    if (accepting_.load(std::memory_order_acquire)) return true;
    const Heard heard = older_->hear(until);
    if (heard == Heard::interruption) continue;
    if (heard == Heard::end) {
      log("the older process has gone: its sockets are taken over");
      return true;
    }
    if (heard != Heard::nothing) {
      return give_up("from the older process: " + describe(heard, older_->message()));
    }
    std::string awaited = party_->awaited();
    if (awaited.empty()) awaited = "every core";
    if (until == end) {
      return give_up("not ready in time: the older process gave sockets for " + awaited +
                     ", where this one does not accept");
    }
    log("taking over: waiting until this process accepts on " + awaited);
    until = end;
  }
}

/// From here on the older process may have gone: then nobody else accepts.
bool OsHandover::wait_for_the_word() {
  if (!older_->say({.kind = Kind::ready})) return true;
  Heard heard = older_->hear_undisturbed(in(answer_within));
  if (heard == Heard::nothing) {
    // It must not say so later, to nobody.
    older_->stop_listening();
    heard = older_->hear_undisturbed(in(0s));
    if (heard == Heard::end) heard = Heard::nothing;
  }
  if (heard == Heard::end) return true;
  if (!older_->says(heard, Kind::yours)) {
    return give_up("from the older process: " + describe(heard, older_->message()));
  }
  return true;
}

/// Until it says so, or is gone. If neither is heard, it is stuck, and accepts next to nothing.
void OsHandover::wait_until_the_older_stops() {
  const Instant until = in(answer_within);
  Heard heard = Heard::interruption;
  while (heard == Heard::interruption && !stopping()) heard = older_->hear(until);
}

bool OsHandover::give_up(std::string why) {
  older_->refuse(why);
  older_.reset();
  party_->not_taken_over("not taken over: " + std::move(why));
  return false;
}

// --- the older process ---------------------------------------------------------------------------

void OsHandover::serve_newer_ones() {
  while (!stopping() && !accepting_.load(std::memory_order_acquire)) {
    static_cast<void>(wait_readable(-1, event_.get(), never));
  }
  if (stopping()) return;
  log("a newer process can take over at " + place_.to_string());
  while (!stopping()) {
    const Woken woken = wait_readable(listener_.get(), event_.get(), never);
    if (woken != Woken::readable) continue;
    auto connection = os::accept_one(listener_.get());
    if (connection) {
      if (hand_over(HandoverTalk(std::move(*connection), event_.get()))) return;
    } else if (connection.error() != system_error(EAGAIN)) {
      // Out of descriptors: it has to wait like everybody else.
      static_cast<void>(wait_readable(-1, event_.get(), in(100ms)));
    }
  }
}

bool OsHandover::hand_over(HandoverTalk newer) {
  if (!check(newer)) return false;
  const HandoverParty::Sockets sockets = party_->offer();
  if (!offer(newer, sockets)) {
    party_->kept(sockets);
    return false;
  }
  file_.reset();  // the newer one's from now on
  party_->handed_over();
  wait_until_stopped(sockets);
  static_cast<void>(newer.say({.kind = Kind::stopped}));
  return true;
}

/// Whether it is a newer process of this service.
bool OsHandover::check(HandoverTalk& newer) {
  const auto user = os::peer_user(newer.connection());
  if (!user || (*user != os::own_user() && *user != 0)) {
    log("not handed over: another user has asked at " + place_.to_string());
    newer.refuse("this user may not take over");
    return false;
  }
  Heard heard = Heard::interruption;
  const Instant until = in(answer_within);
  while (heard == Heard::interruption && !stopping()) heard = newer.hear(until);
  if (newer.says(heard, Kind::ask) && newer.message().text == options_.service) return true;
  if (heard == Heard::end) return false;
  if (newer.says(heard, Kind::ask)) {
    log("not handed over: a process of the service '" + newer.message().text + "' has asked");
    newer.refuse("this is the service '" + options_.service + "'");
  } else if (stopping()) {
    newer.refuse("it ends");
  } else {
    log("not handed over at " + place_.to_string() + ": somebody asked, but " +
        describe(heard, newer.message()));
    newer.refuse(heard == Heard::other_version
                     ? "this process speaks version " + std::to_string(HandoverMessage::version)
                     : "that was no question");
  }
  return false;
}

/// Whether the newer process has the sockets, and knows.
bool OsHandover::offer(HandoverTalk& newer, const HandoverParty::Sockets& sockets) {
  if (sockets.empty()) {
    newer.refuse("it does not listen");
    return false;
  }
  if (!pass(newer, sockets)) return false;
  const Instant until = in(options_.ready_within + answer_within);
  Heard heard = Heard::interruption;
  while (heard == Heard::interruption && !stopping()) heard = newer.hear(until);
  if (!stopping() && !newer.says(heard, Kind::ready)) {
    log("a newer process does not take over (" + describe(heard, newer.message()) +
        "): this one goes on");
    newer.refuse("it took too long");
    return false;
  }
  if (stopping() || !party_->agree(sockets)) {
    newer.refuse("it ends");
    return false;
  }
  if (auto said = newer.say({.kind = Kind::yours}); !said) {
    log("a newer process does not take over (it has gone): this one goes on");
    return false;
  }
  return true;
}

bool OsHandover::pass(HandoverTalk& newer, const HandoverParty::Sockets& sockets) {
  std::vector<HandoverMessage::Socket> all;
  std::vector<int> descriptors;
  for (const auto& each : sockets) {
    all.push_back(
        {HandoverMessage::Use::listening, each->held(), handover_text(each->bound().to_string())});
    descriptors.push_back(each->descriptor());
  }
  all.push_back({HandoverMessage::Use::meeting, false, handover_text(place_.to_string())});
  descriptors.push_back(listener_.get());
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t count = std::min(all.size() - begin, os::packet_descriptors_max);
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    HandoverMessage message{.kind = Kind::offer};
    message.sockets.assign(first, first + static_cast<std::ptrdiff_t>(count));
    message.last = begin + count == all.size();
    const auto said = newer.say(message, std::span(descriptors).subspan(begin, count));
    if (!said) {
      log("not handed over: the sockets cannot be sent: " + said.error().message());
      return false;
    }
    begin += count;
  }
  return true;
}

void OsHandover::wait_until_stopped(const HandoverParty::Sockets& sockets) {
  const Instant until = in(stop_within);
  const auto accepting = [](const auto& each) { return each->accepting(); };
  while (std::ranges::any_of(sockets, accepting)) {
    if (wait_readable(-1, event_.get(), until) == Woken::timed_out) return;
  }
}

void OsHandover::leave_place() noexcept {
  if (file_) os::remove_local_path(place_, *file_);
  file_.reset();
  listener_.close();
}

}  // namespace weir
