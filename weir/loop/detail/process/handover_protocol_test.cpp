// Tests of the protocol of a hot restart, with a scripted endpoint and other process.
#include "weir/loop/detail/process/handover_protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/os/detail/io/seqpacket_socket.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::loop::handover_protocol_test {
namespace {

using namespace std::chrono_literals;
using Kind = HandoverMessage::Kind;
using Use = HandoverMessage::Use;
using ReceiveResult = HandoverConnection::ReceiveResult;
using Texts = std::vector<std::string>;

/// A platform that can inherit sockets. It refuses all of them if `refuses` is set.
class InheritingPlatform final : public MemoryPlatform {
 public:
  Result<Descriptor> inherit_listener(int descriptor) override {
    Descriptor inherited(*this, descriptor);
    if (refuses) return fail(system_error(ENOTSOCK));
    return inherited;
  }
  bool refuses = false;
};

/// One action of the other process.
struct PeerEvent {
  ReceiveResult result = ReceiveResult::closed;
  HandoverMessage message = {};
  std::function<void()> before = {};  ///< called while this process waits
};

/// The script of the other process on one connection, and the messages that it has got.
struct Peer {
  void says(HandoverMessage message, std::function<void()> before = {}) {
    events.push_back({ReceiveResult::message, std::move(message), std::move(before)});
  }
  void causes(ReceiveResult result, std::function<void()> before = {}) {
    events.push_back({result, {}, std::move(before)});
  }
  /// Returns the kinds of the messages that it got; a rejection as its text.
  Texts got() const {
    static const Texts names = {"",      "request",     "offer",   "reject",
                                "ready", "transferred", "stopped", "received"};
    Texts kinds;
    for (const HandoverMessage& each : sent) {
      kinds.push_back(each.kind == Kind::reject ? each.text
                                                : names[static_cast<std::size_t>(each.kind)]);
    }
    return kinds;
  }

  std::string rejection;
  std::deque<PeerEvent> events;  ///< the connection is closed after them
  std::vector<HandoverMessage> sent;
  std::vector<std::vector<int>> descriptors;  ///< sent with each message
  std::size_t sends_max = 100;                ///< later sends fail
  std::vector<Duration> timeouts;             ///< of each wait
  bool shut = false;
};

class ScriptedConnection final : public HandoverConnection {
 public:
  ScriptedConnection(MemoryPlatform& platform, Peer& peer) : platform_(platform), peer_(peer) {}

  std::string peer_rejection_reason() override { return peer_.rejection; }
  ReceiveResult receive(Instant until) override {
    peer_.timeouts.push_back(until == never ? Duration::max() : until - platform_.now());
    if (peer_.events.empty()) return ReceiveResult::closed;
    const PeerEvent event = std::move(peer_.events.front());
    peer_.events.pop_front();
    if (event.before) event.before();
    if (event.result != ReceiveResult::message) return event.result;
    message_ = event.message;
    sockets_.clear();
    while (sockets_.size() < message_.sockets.size()) {
      sockets_.push_back(platform_.listen(os::Address::loopback(0), {}).value());
    }
    return event.result;
  }
  void shut_down_receiving() noexcept override { peer_.shut = true; }

 private:
  Result<> do_send(const HandoverMessage& message, std::span<const int> sockets) override {
    if (peer_.sent.size() == peer_.sends_max) return fail(system_error(EPIPE));
    peer_.sent.push_back(message);
    peer_.descriptors.emplace_back(sockets.begin(), sockets.end());
    return {};
  }

  MemoryPlatform& platform_;
  Peer& peer_;
};

class ScriptedEndpoint final : public HandoverEndpoint {
 public:
  explicit ScriptedEndpoint(MemoryPlatform& platform) : platform_(platform) {}

  std::string name() const override { return "unix:/meet"; }
  Result<std::unique_ptr<HandoverConnection>> connect_or_listen() override {
    ++connects;
    if (connect_error) return fail(connect_error);
    if (older.empty()) {
      socket_ = platform_.listen(os::Address::loopback(0), {}).value();
      return std::unique_ptr<HandoverConnection>();
    }
    Peer& peer = *older.front();
    if (older.size() > 1 || !repeats) older.pop_front();
    return std::make_unique<ScriptedConnection>(platform_, peer);
  }
  const Descriptor& socket() const noexcept override { return socket_; }
  void set_socket(Descriptor socket) override { socket_ = std::move(socket); }
  void take_ownership() noexcept override { calls.push_back("take"); }
  void drop_ownership() noexcept override { calls.push_back("drop"); }
  void close() noexcept override {
    calls.push_back("close");
    socket_.reset();
  }
  std::unique_ptr<HandoverConnection> accept_newer() override {
    if (newer.empty()) {
      if (on_idle) on_idle();
      return nullptr;
    }
    Peer& peer = *newer.front();
    newer.pop_front();
    return std::make_unique<ScriptedConnection>(platform_, peer);
  }
  bool wait(Instant until) override {
    waits.push_back(until == never ? Duration::max() : until - platform_.now());
    return on_wait ? on_wait() : false;
  }
  void notify() noexcept override { ++notifications; }

  int connects = 0;
  int notifications = 0;
  bool repeats = false;  ///< true: the last older process answers every connect
  std::error_code connect_error;
  std::deque<Peer*> older;
  std::deque<Peer*> newer;
  Texts calls;
  std::vector<Duration> waits;
  std::function<void()> on_idle;  ///< called when no newer process is left
  std::function<bool()> on_wait;

 private:
  MemoryPlatform& platform_;
  Descriptor socket_;
};

struct Delegate final : HandoverDelegate {
  Sockets sockets_to_offer() override {
    calls.push_back("offer");
    return sockets;
  }
  std::string state_to_offer() override { return "secret"; }
  bool confirm_handover(const Sockets& offered) override {
    EXPECT_EQ(offered, sockets);
    calls.push_back("confirm");
    return confirms;
  }
  void on_handover_failed(const Sockets& offered) override {
    EXPECT_EQ(offered, sockets);
    calls.push_back("failed");
  }
  void on_handed_over() override {
    calls.push_back("handed over");
    sockets.clear();
  }
  std::string unaccepted_addresses() override { return unaccepted; }
  bool prepare_ownership() override {
    calls.push_back("prepare");
    return prepares;
  }
  void on_owned() override { calls.push_back("owned"); }
  void on_taken_over() override { calls.push_back("taken over"); }
  void on_takeover_failed(std::string why) override { calls.push_back(std::move(why)); }

  Sockets sockets;
  std::string unaccepted = "[::]:80";
  bool confirms = true;
  bool prepares = true;
  Texts calls;
};

class HandoverProtocolTest : public testing::Test {
 protected:
  static HandoverMessage offer_of(std::vector<HandoverMessage::Socket> sockets, bool last = true) {
    return {.kind = Kind::offer, .sockets = std::move(sockets), .last = last};
  }
  static HandoverMessage request() { return {.kind = Kind::request, .text = "shop"}; }
  /// An older process that offers one socket and the rendezvous.
  Peer& offering_peer() {
    Peer& peer = peers_.emplace_back();
    peer.says(offer_of({{Use::listening, false, "[::]:80"}, {Use::rendezvous, false, ""}}));
    endpoint_.older.push_back(&peer);
    return peer;
  }
  /// A newer process that sends its request.
  Peer& requesting_peer() {
    Peer& peer = peers_.emplace_back();
    peer.says(request());
    endpoint_.newer.push_back(&peer);
    return peer;
  }
  /// Begins as a newer process that has got its sockets.
  Peer& begin_after_older() {
    Peer& peer = offering_peer();
    EXPECT_EQ(protocol_.begin(), "");
    peer.timeouts.clear();
    peer.sent.clear();
    return peer;
  }
  /// Begins as the first process, which listens on `count` sockets and accepts.
  void begin_first(std::size_t count = 1) {
    EXPECT_EQ(protocol_.begin(), "");
    for (std::size_t i = 0; i < count; ++i) {
      auto listener = platform_.listen(os::Address::loopback(0), {}).value();
      const os::Address bound = platform_.local_address(listener.value()).value();
      delegate_.sockets.push_back(
          std::make_shared<SharedListener>(platform_, std::move(listener), bound));
    }
    protocol_.on_accepting();
  }
  /// Runs until no newer process is left.
  void run() {
    endpoint_.on_idle = [this] { protocol_.stop(); };
    protocol_.run(delegate_);
    EXPECT_EQ(endpoint_.calls.back(), "close");
  }
  bool logged(const std::string& line) const {
    return std::ranges::count(platform_.logged(), line) == 1;
  }

  InheritingPlatform platform_;
  ScriptedEndpoint endpoint_{platform_};
  Delegate delegate_;
  std::deque<Peer> peers_;
  HandoverOptions options_{.path = "/meet", .service = "shop", .ready_timeout = 8s};
  HandoverProtocol protocol_{platform_, options_, endpoint_};
};

const std::string prefix = "cannot take sockets over at '/meet': ";

TEST_F(HandoverProtocolTest, TheFirstProcessTakesNothing) {
  EXPECT_EQ(protocol_.begin(), "");
  EXPECT_TRUE(protocol_.take_sockets().empty());
  EXPECT_TRUE(endpoint_.socket());
  EXPECT_EQ(endpoint_.connects, 1);
}

TEST_F(HandoverProtocolTest, ReportsWhyItCannotMeet) {
  endpoint_.connect_error = system_error(EACCES);
  EXPECT_EQ(protocol_.begin(), prefix + "Permission denied");
  HandoverOptions invalid = options_;
  for (const std::string& name : {std::string(256, 'x'), std::string("a\n")}) {
    invalid.service = name;
    EXPECT_EQ(HandoverProtocol(platform_, invalid, endpoint_).begin(),
              prefix + "the service's name is longer than 255 bytes or not printable");
  }
  EXPECT_EQ(endpoint_.connects, 1);
  invalid.service = std::string(255, 'x');
  EXPECT_EQ(HandoverProtocol(platform_, invalid, endpoint_).begin(), prefix + "Permission denied");
}

TEST_F(HandoverProtocolTest, TakesTheSocketsOfAllOffers) {
  Peer peer;
  peer.causes(ReceiveResult::interrupted);
  peer.says(offer_of({{Use::listening, false, "a"}, {Use::listening, true, "b"}}, false));
  peer.says(offer_of({{Use::rendezvous, false, "c"}, {Use::listening, false, "d"}}));
  endpoint_.older.push_back(&peer);
  EXPECT_EQ(protocol_.begin(), "");
  const auto sockets = protocol_.take_sockets();
  ASSERT_EQ(sockets.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(sockets[i]->peer_waits_for_accept());
    EXPECT_EQ(sockets[i]->externally_owned(), i == 1);
    EXPECT_EQ(sockets[i]->bound(), platform_.local_address(sockets[i]->descriptor()).value());
  }
  EXPECT_TRUE(endpoint_.socket()) << "the rendezvous";
  EXPECT_EQ(peer.sent, (std::vector<HandoverMessage>{request(), {.kind = Kind::received}}));
  EXPECT_EQ(peer.timeouts, (std::vector<Duration>{8s, 8s, 8s}));
  EXPECT_TRUE(protocol_.take_sockets().empty()) << "they are taken once";
}

TEST_F(HandoverProtocolTest, RejectsAnOlderProcessOfAnotherUser) {
  Peer& peer = offering_peer();
  peer.rejection = "the process there belongs to user 7";
  EXPECT_EQ(protocol_.begin(), prefix + peer.rejection);
  EXPECT_TRUE(peer.sent.empty());
}

TEST_F(HandoverProtocolTest, ReportsWhyTheOlderProcessSentNoSockets) {
  const std::vector<std::pair<PeerEvent, std::string>> cases = {
      {{ReceiveResult::timed_out}, "no answer in time"},
      {{ReceiveResult::invalid}, "invalid message or missing descriptors"},
      {{ReceiveResult::version_mismatch}, "other protocol version"},
      {{ReceiveResult::message, {.kind = Kind::ready}}, "unexpected message"},
      {{ReceiveResult::message, {.kind = Kind::reject, .text = "no"}}, "rejected: no"},
  };
  for (const auto& [event, why] : cases) {
    Peer peer;
    peer.events.push_back(event);
    endpoint_.older.push_back(&peer);
    EXPECT_EQ(protocol_.begin(), prefix + "no sockets from the older process: " + why);
  }
}

TEST_F(HandoverProtocolTest, FailsWithoutTheRendezvousSocketOrWithAnUnusableSocket) {
  Peer incomplete;
  incomplete.says(offer_of({{Use::listening, false, "a"}}));
  endpoint_.older.push_back(&incomplete);
  EXPECT_EQ(protocol_.begin(), prefix + "the older process did not send its rendezvous socket");
  platform_.refuses = true;
  offering_peer();
  HandoverProtocol another(platform_, options_, endpoint_);
  EXPECT_EQ(another.begin(),
            prefix + "the older process sent a socket for [::]:80 that cannot be used: " +
                system_error(ENOTSOCK).message());
}

TEST_F(HandoverProtocolTest, TriesAgainIfTheOlderProcessEndsBeforeItsOffers) {
  Peer unwilling;
  unwilling.sends_max = 0;
  Peer silent;
  Peer partial;
  partial.says(offer_of({{Use::listening, false, "a"}}, false));
  endpoint_.older = {&unwilling, &silent, &partial};
  offering_peer();
  EXPECT_EQ(protocol_.begin(), "");
  EXPECT_EQ(endpoint_.connects, 4);
  EXPECT_EQ(endpoint_.calls, (Texts{"close", "close", "close"}));
  EXPECT_EQ(protocol_.take_sockets().size(), 1U) << "only the sockets of the last one";
}

TEST_F(HandoverProtocolTest, GivesUpAfterFiveOlderProcessesThatEnd) {
  Peer silent;
  endpoint_.older.push_back(&silent);
  endpoint_.repeats = true;
  EXPECT_EQ(protocol_.begin(), prefix + "each older process at this path ended before it answered");
  EXPECT_EQ(endpoint_.connects, 5);
}

// --- the newer process ---------------------------------------------------------------------------

TEST_F(HandoverProtocolTest, ANewerProcessTakesOver) {
  Peer& older = begin_after_older();
  older.causes(ReceiveResult::interrupted, [&] { protocol_.on_accepting(); });
  older.says({.kind = Kind::transferred});
  older.says({.kind = Kind::stopped},
             [&] { EXPECT_EQ(delegate_.calls, (Texts{"prepare", "owned"})); });
  run();
  EXPECT_EQ(older.got(), Texts{"ready"});
  EXPECT_EQ(delegate_.calls, (Texts{"prepare", "owned", "taken over"}));
  EXPECT_EQ(endpoint_.calls, (Texts{"take", "close"}));
  EXPECT_EQ(older.timeouts, (std::vector<Duration>{1s, 5s, 5s}));
  EXPECT_TRUE(logged("weir: a newer process can take over at unix:/meet"));
}

TEST_F(HandoverProtocolTest, ANewerProcessLogsWhereItDoesNotAcceptYet) {
  Peer& older = begin_after_older();
  older.causes(ReceiveResult::timed_out);
  older.causes(ReceiveResult::interrupted, [&] { protocol_.on_accepting(); });
  older.says({.kind = Kind::transferred});
  older.says({.kind = Kind::stopped});
  run();
  EXPECT_TRUE(logged("weir: hot restart: waiting until this process accepts on [::]:80"));
  EXPECT_EQ(older.timeouts, (std::vector<Duration>{1s, 8s, 5s, 5s}));
  EXPECT_EQ(delegate_.calls.back(), "taken over");
}

TEST_F(HandoverProtocolTest, ANewerProcessThatIsNotReadyInTimeFails) {
  for (const bool known : {true, false}) {
    ScriptedEndpoint endpoint(platform_);
    HandoverProtocol protocol(platform_, options_, endpoint);
    Delegate delegate;
    if (!known) delegate.unaccepted.clear();
    Peer older;
    older.says(offer_of({{Use::rendezvous, false, ""}}));
    endpoint.older.push_back(&older);
    EXPECT_EQ(protocol.begin(), "");
    older.causes(ReceiveResult::timed_out);
    older.causes(ReceiveResult::timed_out);
    protocol.run(delegate);
    const std::string why = "not ready in time: this process does not accept on " +
                            std::string(known ? "[::]:80" : "every core") +
                            ", where the older process listens";
    EXPECT_EQ(older.got(), (Texts{"request", "received", why}));
    EXPECT_EQ(delegate.calls, Texts{"hot restart failed: " + why});
    EXPECT_EQ(endpoint.calls, Texts{"close"}) << "the older process still owns the name";
  }
}

TEST_F(HandoverProtocolTest, ANewerProcessTakesOverFromAnOlderOneThatEnds) {
  Peer& older = begin_after_older();
  older.causes(ReceiveResult::closed);
  older.sends_max = 0;
  endpoint_.on_wait = [&] {
    EXPECT_EQ(delegate_.calls.back(), "taken over");
    protocol_.on_accepting();
    return true;
  };
  run();
  EXPECT_TRUE(logged("weir: hot restart: the older process ended: taking over its sockets"));
  EXPECT_EQ(delegate_.calls, (Texts{"prepare", "owned", "taken over"}));
  EXPECT_EQ(endpoint_.calls, (Texts{"take", "close"}));
}

TEST_F(HandoverProtocolTest, ANewerProcessFailsIfTheOlderOneIsNotHeardBeforeItIsReady) {
  const std::vector<std::pair<PeerEvent, std::string>> cases = {
      {{ReceiveResult::invalid}, "invalid message or missing descriptors"},
      {{ReceiveResult::message, {.kind = Kind::reject, .text = "no"}}, "rejected: no"},
      {{ReceiveResult::message, {.kind = Kind::transferred}}, "unexpected message"},
  };
  for (const auto& [event, why] : cases) {
    HandoverProtocol protocol(platform_, options_, endpoint_);
    Peer& older = offering_peer();
    EXPECT_EQ(protocol.begin(), "");
    older.events.push_back(event);
    delegate_.calls.clear();
    protocol.run(delegate_);
    EXPECT_EQ(delegate_.calls, Texts{"hot restart failed: from the older process: " + why});
    EXPECT_EQ(older.got().back(), "from the older process: " + why);
  }
}

TEST_F(HandoverProtocolTest, ADrainingNewerProcessDoesNotTakeOver) {
  Peer& older = begin_after_older();
  delegate_.prepares = false;
  protocol_.on_accepting();
  run();
  EXPECT_EQ(older.got(), Texts{"the newer process is shutting down"});
  EXPECT_EQ(delegate_.calls, Texts{"prepare"});
  EXPECT_EQ(endpoint_.calls, Texts{"close"});
}

TEST_F(HandoverProtocolTest, AStoppingNewerProcessDoesNotWait) {
  Peer& older = begin_after_older();
  older.causes(ReceiveResult::interrupted, [&] { protocol_.stop(); });
  run();
  EXPECT_TRUE(older.sent.empty());
  EXPECT_TRUE(delegate_.calls.empty());
}

TEST_F(HandoverProtocolTest, ANewerProcessThatIsStoppedAsOwnerDoesNotAccept) {
  Peer& older = begin_after_older();
  protocol_.on_accepting();
  older.says({.kind = Kind::transferred});
  older.causes(ReceiveResult::interrupted);
  older.causes(ReceiveResult::interrupted, [&] { protocol_.stop(); });
  older.says({.kind = Kind::stopped});
  run();
  EXPECT_EQ(delegate_.calls, (Texts{"prepare", "owned"}));
  EXPECT_EQ(older.events.size(), 1U) << "it does not wait for the older process";
}

TEST_F(HandoverProtocolTest, ASilentOlderProcessKeepsItsSockets) {
  Peer& older = begin_after_older();
  protocol_.on_accepting();
  older.causes(ReceiveResult::interrupted);
  older.causes(ReceiveResult::timed_out);
  run();
  EXPECT_TRUE(older.shut) << "it can no longer send that the sockets are transferred";
  const std::string why = "from the older process: no answer in time";
  EXPECT_EQ(older.got(), (Texts{"ready", why}));
  EXPECT_EQ(delegate_.calls, (Texts{"prepare", "hot restart failed: " + why}));
  EXPECT_EQ(older.timeouts, (std::vector<Duration>{5s, 5s, 0s}));
}

TEST_F(HandoverProtocolTest, AnAnswerInTheLastMomentCounts) {
  Peer& older = begin_after_older();
  protocol_.on_accepting();
  older.causes(ReceiveResult::timed_out);
  older.says({.kind = Kind::transferred});
  older.says({.kind = Kind::stopped});
  run();
  EXPECT_EQ(delegate_.calls, (Texts{"prepare", "owned", "taken over"}));
}

TEST_F(HandoverProtocolTest, ANewerProcessThatDoesNotTakeOverServesNoOtherProcess) {
  struct {
    bool prepares;
    std::vector<PeerEvent> events;
  } const cases[] = {
      {false, {}},
      {true, {{ReceiveResult::timed_out}, {ReceiveResult::timed_out}}},
      {true, {{ReceiveResult::invalid}}},
      {true, {{ReceiveResult::message, {.kind = Kind::reject, .text = "no"}}}},
  };
  for (const auto& each : cases) {
    HandoverProtocol protocol(platform_, options_, endpoint_);
    Peer& older = offering_peer();
    EXPECT_EQ(protocol.begin(), "");
    older.events.insert(older.events.end(), each.events.begin(), each.events.end());
    Peer& next = requesting_peer();
    endpoint_.on_idle = [&] { protocol.stop(); };
    endpoint_.calls.clear();
    delegate_.prepares = each.prepares;
    protocol.on_accepting();
    protocol.run(delegate_);
    EXPECT_TRUE(next.timeouts.empty()) << "its messages are not read";
    EXPECT_TRUE(next.sent.empty());
    EXPECT_EQ(endpoint_.calls, Texts{"close"}) << "the older process still owns the name";
    endpoint_.newer.clear();
  }
  EXPECT_TRUE(platform_.logged().empty()) << "no newer process can take over here";
}

// --- the older process ---------------------------------------------------------------------------

TEST_F(HandoverProtocolTest, AnOlderProcessHandsOver) {
  begin_first(2);
  Peer& newer = requesting_peer();
  newer.says({.kind = Kind::received});
  newer.says({.kind = Kind::ready});
  const auto sockets = delegate_.sockets;
  sockets[1]->set_externally_owned();
  const std::vector<int> descriptors = {sockets[0]->descriptor(), sockets[1]->descriptor(),
                                        endpoint_.socket().value()};
  run();
  EXPECT_EQ(newer.got(), (Texts{"offer", "transferred", "stopped"}));
  EXPECT_EQ(newer.sent[0].sockets, (std::vector<HandoverMessage::Socket>{
                                       {Use::listening, false, sockets[0]->bound().to_string()},
                                       {Use::listening, true, sockets[1]->bound().to_string()},
                                       {Use::rendezvous, false, "unix:/meet"}}));
  EXPECT_TRUE(newer.sent[0].last);
  EXPECT_EQ(newer.descriptors[0], descriptors);
  EXPECT_EQ(newer.timeouts, (std::vector<Duration>{5s, 2s, 13s}));
  EXPECT_EQ(delegate_.calls, (Texts{"offer", "confirm", "handed over"}));
  EXPECT_EQ(endpoint_.calls, (Texts{"drop", "close"}));
}

TEST_F(HandoverProtocolTest, SplitsAnOfferThatIsTooLongForOneMessage) {
  const std::size_t most = os::message_descriptors_max;
  for (const std::size_t count : {most - 1, most, 2 * most}) {
    HandoverProtocol protocol(platform_, options_, endpoint_);
    delegate_ = {};
    EXPECT_EQ(protocol.begin(), "");
    for (std::size_t i = 0; i < count; ++i) {
      delegate_.sockets.push_back(std::make_shared<SharedListener>(
          platform_, platform_.listen(os::Address::loopback(0), {}).value(), os::Address()));
    }
    protocol.on_accepting();
    Peer& newer = requesting_peer();
    newer.says({.kind = Kind::ready});
    protocol.run(delegate_);
    std::size_t offered = 0;
    const std::size_t offers = (count + most) / most;  // with the rendezvous
    for (std::size_t i = 0; i < offers; ++i) {
      ASSERT_EQ(newer.sent[i].kind, Kind::offer);
      EXPECT_EQ(newer.sent[i].last, i + 1 == offers);
      EXPECT_EQ(newer.sent[i].state, i + 1 == offers ? "secret" : "");
      EXPECT_LE(newer.sent[i].sockets.size(), most);
      EXPECT_EQ(newer.descriptors[i].size(), newer.sent[i].sockets.size());
      offered += newer.sent[i].sockets.size();
    }
    EXPECT_EQ(offered, count + 1);
    EXPECT_EQ(newer.sent[offers].kind, Kind::transferred);
  }
}

TEST_F(HandoverProtocolTest, WaitsASecondUntilItsCoresHaveStoppedAccepting) {
  begin_first(2);
  const auto sockets = delegate_.sockets;
  sockets[1]->begin_accepting();
  Peer& newer = requesting_peer();
  newer.says({.kind = Kind::ready});
  int waits = 0;
  endpoint_.on_wait = [&] {
    EXPECT_EQ(newer.got().back(), "transferred") << "it has not stopped yet";
    if (++waits == 2) sockets[1]->end_accepting();
    return true;
  };
  run();
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(endpoint_.waits, (std::vector<Duration>{1s, 1s}));
  EXPECT_EQ(newer.got().back(), "stopped");
}

TEST_F(HandoverProtocolTest, ACoreThatDoesNotStopDelaysTheHandoverForAtMostASecond) {
  begin_first();
  const auto sockets = delegate_.sockets;
  sockets[0]->begin_accepting();
  Peer& newer = requesting_peer();
  newer.says({.kind = Kind::ready});
  run();
  EXPECT_EQ(endpoint_.waits, std::vector<Duration>{1s});
  EXPECT_EQ(newer.got().back(), "stopped");
  sockets[0]->end_accepting();
}

TEST_F(HandoverProtocolTest, ServesNoNewerProcessBeforeItAccepts) {
  EXPECT_EQ(protocol_.begin(), "");
  Peer& newer = requesting_peer();
  endpoint_.on_wait = [&] {
    protocol_.stop();
    return true;
  };
  run();
  EXPECT_TRUE(newer.timeouts.empty());
  EXPECT_EQ(endpoint_.waits, std::vector<Duration>{Duration::max()});
  EXPECT_TRUE(platform_.logged().empty());
  EXPECT_EQ(endpoint_.calls, Texts{"close"});
}

TEST_F(HandoverProtocolTest, NotifiesItsThreadOfEachEvent) {
  protocol_.on_accepting();
  EXPECT_EQ(endpoint_.notifications, 1);
  protocol_.on_socket_stopped();
  EXPECT_EQ(endpoint_.notifications, 2);
  protocol_.stop();
  EXPECT_EQ(endpoint_.notifications, 3);
}

TEST_F(HandoverProtocolTest, RejectsInvalidRequestsAndKeepsServing) {
  begin_first();
  struct Case {
    PeerEvent event;
    std::string answer;
    std::string log;
  };
  const std::vector<Case> cases = {
      {{ReceiveResult::timed_out}, "not a request", "rejected at unix:/meet: no answer in time"},
      {{ReceiveResult::version_mismatch},
       "this process uses protocol version 3",
       "rejected at unix:/meet: other protocol version"},
      {{ReceiveResult::message, {.kind = Kind::ready}},
       "not a request",
       "rejected at unix:/meet: unexpected message"},
      {{ReceiveResult::message, {.kind = Kind::request, .text = "bank"}},
       "this is the service 'shop'",
       "rejected: a process of the service 'bank' connected"},
  };
  std::vector<Peer*> rejected;
  for (const Case& each : cases) {
    Peer& peer = peers_.emplace_back();
    peer.events.push_back(each.event);
    endpoint_.newer.push_back(&peer);
    rejected.push_back(&peer);
  }
  Peer& gone = peers_.emplace_back();
  endpoint_.newer.push_back(&gone);
  Peer& foreign = requesting_peer();
  foreign.rejection = "the process there belongs to user 7";
  Peer& last = requesting_peer();
  last.says({.kind = Kind::ready});
  run();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(rejected[i]->got(), Texts{cases[i].answer});
    EXPECT_TRUE(logged("weir: hot restart " + cases[i].log)) << cases[i].log;
  }
  EXPECT_TRUE(gone.sent.empty());
  EXPECT_EQ(foreign.got(), Texts{"processes of this user may not take over"});
  EXPECT_TRUE(foreign.timeouts.empty()) << "its messages are not read";
  EXPECT_TRUE(
      logged("weir: hot restart rejected: a process of another user connected at unix:/meet"));
  EXPECT_EQ(platform_.logged().size(), 6U) << "a process that closes immediately is not logged";
  EXPECT_EQ(delegate_.calls, (Texts{"offer", "confirm", "handed over"}));
}

TEST_F(HandoverProtocolTest, RejectsWithoutSockets) {
  begin_first(0);
  Peer& newer = requesting_peer();
  run();
  EXPECT_EQ(newer.got(), Texts{"the older process does not listen"});
  EXPECT_EQ(delegate_.calls, (Texts{"offer", "failed"}));
}

TEST_F(HandoverProtocolTest, AFailedOfferChangesNothing) {
  begin_first();
  Peer& late = requesting_peer();
  late.causes(ReceiveResult::timed_out);
  Peer& gone = requesting_peer();
  Peer& full = requesting_peer();
  full.sends_max = 0;
  Peer& gone_later = requesting_peer();
  gone_later.says({.kind = Kind::ready});
  gone_later.sends_max = 1;
  run();
  EXPECT_EQ(late.got(), (Texts{"offer", "the newer process was not ready in time"}));
  EXPECT_TRUE(logged(
      "weir: a newer process did not take over (no answer in time): this process continues"));
  EXPECT_EQ(gone.got().front(), "offer");
  const std::string closed =
      "weir: a newer process did not take over (connection closed): this process continues";
  EXPECT_EQ(std::ranges::count(platform_.logged(), closed), 2);
  EXPECT_TRUE(logged("weir: hot restart failed: cannot send the sockets: Broken pipe"));
  EXPECT_EQ(delegate_.calls, (Texts{"offer", "failed", "offer", "failed", "offer", "failed",
                                    "offer", "confirm", "failed"}));
  EXPECT_EQ(endpoint_.calls, Texts{"close"}) << "this process still owns the name";
}

TEST_F(HandoverProtocolTest, AProcessThatSendsOnlyItsRequestHoldsUpTheNextOneForTwoSeconds) {
  begin_first();
  Peer& silent = requesting_peer();
  silent.causes(ReceiveResult::timed_out);
  Peer& next = requesting_peer();
  next.says({.kind = Kind::received});
  next.says({.kind = Kind::ready});
  run();
  EXPECT_EQ(silent.timeouts, (std::vector<Duration>{5s, 2s}));
  EXPECT_EQ(silent.got(), (Texts{"offer", "the newer process was not ready in time"}));
  EXPECT_EQ(next.got(), (Texts{"offer", "transferred", "stopped"}));
}

TEST_F(HandoverProtocolTest, ADrainingOlderProcessHandsNothingOver) {
  begin_first();
  delegate_.confirms = false;
  Peer& unconfirmed = requesting_peer();
  unconfirmed.says({.kind = Kind::ready});
  Peer& during_offer = requesting_peer();
  during_offer.causes(ReceiveResult::interrupted, [&] { protocol_.stop(); });
  Peer& never_served = requesting_peer();
  run();
  for (const Peer* each : {&unconfirmed, &during_offer}) {
    EXPECT_EQ(each->got(), (Texts{"offer", "the older process is shutting down"}));
  }
  EXPECT_EQ(delegate_.calls, (Texts{"offer", "confirm", "failed", "offer", "failed"}));
  EXPECT_TRUE(never_served.timeouts.empty());
}

TEST_F(HandoverProtocolTest, TakesTheStateOfTheLastOffer) {
  Peer& peer = peers_.emplace_back();
  peer.says(offer_of({{Use::listening, false, "[::]:80"}}, false));
  HandoverMessage last = offer_of({{Use::rendezvous, false, ""}});
  last.state = "secret";
  peer.says(last);
  endpoint_.older.push_back(&peer);
  EXPECT_EQ(protocol_.begin(), "");
  EXPECT_EQ(protocol_.take_state(), "secret");
}

TEST_F(HandoverProtocolTest, AStopDuringTheRequestRejectsIt) {
  begin_first();
  Peer& newer = peers_.emplace_back();
  newer.causes(ReceiveResult::interrupted);
  newer.causes(ReceiveResult::interrupted, [&] { protocol_.stop(); });
  endpoint_.newer.push_back(&newer);
  run();
  EXPECT_EQ(newer.got(), Texts{"the older process is shutting down"});
  EXPECT_TRUE(delegate_.calls.empty());
}

}  // namespace
}  // namespace weir::loop::handover_protocol_test
