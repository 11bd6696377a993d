#include "weir/loop/handover_conversation.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "weir/loop/shared_listener.hpp"
#include "weir/os/local_packets.hpp"

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

std::string HandoverConversation::begin() {
  const bool nameable = handover_text(options_.service) == options_.service;
  const std::string failure =
      nameable ? find_place() : "the service's name is longer than 255 bytes or not printable";
  return failure.empty() ? failure : cannot_take_over(options_) + failure;
}

std::string HandoverConversation::find_place() {
  for (int tries = 0; tries < tries_max; ++tries) {
    auto met = place_.meet();
    if (!met) return met.error().message();
    older_ = std::move(*met);
    if (older_ == nullptr) return {};
    bool gone = false;
    std::string failure = ask(gone);
    if (!gone) return failure;
    older_.reset();
    taken_.clear();
    place_.leave();
  }
  return "processes begin and end there all the time";
}

/// Asks the older process, and takes what it offers. `gone`: it has ended before that.
std::string HandoverConversation::ask(bool& gone) {
  if (std::string why = older_->distrust(); !why.empty()) return why;
  gone = !older_->say({.kind = Kind::ask, .text = options_.service});
  if (gone) return {};
  do {
    const Heard heard = older_->hear_undisturbed(in(options_.ready_within));
    gone = heard == Heard::end;
    if (gone) return {};
    if (!older_->says(heard, Kind::offer)) {
      return "an older process is there, but " + describe(heard, older_->message());
    }
    if (std::string failure = take_offer(); !failure.empty()) return failure;
  } while (!older_->message().last);
  if (!place_.socket()) return "an older process is there, but does not give up its place";
  return {};
}

std::string HandoverConversation::take_offer() {
  std::vector<Descriptor> sockets = older_->take_sockets();
  for (std::size_t index = 0; index < sockets.size(); ++index) {
    const HandoverMessage::Socket& socket = older_->message().sockets[index];
    if (socket.use == HandoverMessage::Use::meeting) {
      place_.set_socket(std::move(sockets[index]));
      continue;
    }
    auto inherited = host_.inherit_listener(sockets[index].release());
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

void HandoverConversation::accepting() noexcept {
  // release: the thread sees what was done before.
  accepting_.store(true, std::memory_order_release);
  place_.ring();
}

void HandoverConversation::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  place_.ring();
}

void HandoverConversation::run(HandoverParty& party) {
  party_ = &party;
  const bool ours = older_ == nullptr || take_over();
  older_.reset();
  if (ours) serve_newer_ones();
  place_.leave();
}

HandoverTalk::Heard HandoverConversation::hear_unless_stopping(HandoverTalk& talk, Instant until) {
  Heard heard = Heard::interruption;
  while (heard == Heard::interruption && !stopping()) heard = talk.hear(until);
  return heard;
}

// --- the newer process ---------------------------------------------------------------------------

/// Whether the sockets are this process' now.
bool HandoverConversation::take_over() {
  if (!wait_until_accepting()) return false;
  if (!party_->ready()) {
    older_->refuse("it ends");
    return false;
  }
  if (!wait_for_the_word()) return false;
  place_.own();
  party_->owned();
  // Until it says that it has stopped, or is gone. If neither is heard, it is stuck, and accepts
  // next to nothing.
  static_cast<void>(hear_unless_stopping(*older_, in(answer_within)));
  if (!stopping()) party_->taken_over();
  return true;
}

bool HandoverConversation::wait_until_accepting() {
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
bool HandoverConversation::wait_for_the_word() {
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

bool HandoverConversation::give_up(std::string why) {
  older_->refuse(why);
  older_.reset();
  party_->not_taken_over("not taken over: " + std::move(why));
  return false;
}

// --- the older process ---------------------------------------------------------------------------

void HandoverConversation::serve_newer_ones() {
  while (!stopping() && !accepting_.load(std::memory_order_acquire)) {
    static_cast<void>(place_.wait(never));
  }
  if (stopping()) return;
  log("a newer process can take over at " + place_.name());
  while (!stopping()) {
    if (const auto newer = place_.wait_for_newer(); newer != nullptr && hand_over(*newer)) return;
  }
}

bool HandoverConversation::hand_over(HandoverTalk& newer) {
  if (!check(newer)) return false;
  HandoverParty::Sockets sockets = party_->offer();
  if (!offer(newer, sockets)) {
    party_->kept(sockets);
    return false;
  }
  place_.disown();  // the newer one's from now on
  party_->handed_over();
  wait_until_stopped(sockets);
  sockets.clear();  // nothing here keeps them open while this process drains
  static_cast<void>(newer.say({.kind = Kind::stopped}));
  return true;
}

/// Whether it is a newer process of this service.
bool HandoverConversation::check(HandoverTalk& newer) {
  if (!newer.distrust().empty()) {
    log("not handed over: another user has asked at " + place_.name());
    newer.refuse("this user may not take over");
    return false;
  }
  const Heard heard = hear_unless_stopping(newer, in(answer_within));
  if (newer.says(heard, Kind::ask) && newer.message().text == options_.service) return true;
  if (heard == Heard::end) return false;
  if (newer.says(heard, Kind::ask)) {
    log("not handed over: a process of the service '" + newer.message().text + "' has asked");
    newer.refuse("this is the service '" + options_.service + "'");
  } else if (stopping()) {
    newer.refuse("it ends");
  } else {
    log("not handed over at " + place_.name() + ": somebody asked, but " +
        describe(heard, newer.message()));
    newer.refuse(heard == Heard::other_version
                     ? "this process speaks version " + std::to_string(HandoverMessage::version)
                     : "that was no question");
  }
  return false;
}

/// Whether the newer process has the sockets, and knows.
bool HandoverConversation::offer(HandoverTalk& newer, const HandoverParty::Sockets& sockets) {
  if (sockets.empty()) {
    newer.refuse("it does not listen");
    return false;
  }
  if (!pass(newer, sockets)) return false;
  const Heard heard = hear_unless_stopping(newer, in(options_.ready_within + answer_within));
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

bool HandoverConversation::pass(HandoverTalk& newer, const HandoverParty::Sockets& sockets) {
  std::vector<HandoverMessage::Socket> all;
  std::vector<int> descriptors;
  for (const auto& each : sockets) {
    all.push_back(
        {HandoverMessage::Use::listening, each->held(), handover_text(each->bound().to_string())});
    descriptors.push_back(each->descriptor());
  }
  all.push_back({HandoverMessage::Use::meeting, false, handover_text(place_.name())});
  descriptors.push_back(place_.socket().value());
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

void HandoverConversation::wait_until_stopped(const HandoverParty::Sockets& sockets) {
  const Instant until = in(stop_within);
  const auto accepting = [](const auto& each) { return each->accepting(); };
  while (std::ranges::any_of(sockets, accepting)) {
    if (!place_.wait(until)) return;
  }
}

}  // namespace weir
