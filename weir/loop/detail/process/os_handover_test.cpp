// Processes of one service that meet, over real Unix sockets: who gets what, and what happens when
// one of them dies, is slow, or is none of ours.
#include "weir/loop/os_handover.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/loop/os_handover_talk.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/loop/shared_listener.hpp"
#include "weir/os/local_packets.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir {
namespace {

using Kind = HandoverMessage::Kind;
using Heard = HandoverTalk::Heard;

constexpr std::chrono::seconds patience{30};

/// A runtime's part, which notes what it is told.
class Party final : public HandoverParty {
 public:
  Sockets sockets;
  std::atomic<bool> agrees = true;

  Sockets offer() override {
    note("offer");
    return sockets;
  }
  bool agree(const Sockets&) override {
    note("asked whether");
    return agrees;
  }
  void kept(const Sockets&) override { note("kept"); }
  void handed_over() override { note("handed over"); }
  std::string awaited() override { return "somewhere"; }
  bool ready() override {
    note("ready");
    return agrees;
  }
  void owned() override { note("owned"); }
  void taken_over() override { note("ours"); }
  void not_taken_over(std::string why) override { note(why); }

  /// Whether it has been told something that contains `text`.
  bool told(std::string_view text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return has(text); });
  }
  /// The same without waiting.
  bool was_told(std::string_view text) {
    const std::lock_guard lock(mutex_);
    return has(text);
  }

 private:
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    told_.push_back(std::move(what));
    changed_.notify_all();
  }
  bool has(std::string_view text) const {
    return std::ranges::any_of(told_, [&](const auto& each) { return each.contains(text); });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> told_;
};

class QuietHost : public OsHost {
 public:
  void log(std::string_view) noexcept override {}
};

class OsHandoverTest : public testing::Test {
 protected:
  /// One process of the service.
  struct Process {
    Party party;
    std::unique_ptr<Handover> handover;  // ends before the party
  };

  HandoverOptions options() const { return {.path = path_, .service = "tests"}; }

  std::unique_ptr<Process> begin(const HandoverOptions& with) {
    return start(OsHandover::meet(host_, with));
  }
  static std::unique_ptr<Process> start(HandoverStart begun) {
    EXPECT_EQ(begun.failure, "");
    auto process = std::make_unique<Process>();
    process->handover = std::move(begun.handover);
    process->party.sockets = process->handover->take_sockets();
    EXPECT_TRUE(process->handover->start(process->party));
    return process;
  }
  std::unique_ptr<Process> begin() { return begin(options()); }

  /// The first, which listens on `count` sockets.
  std::unique_ptr<Process> begin_first(std::size_t count = 2) {
    auto first = begin();
    EXPECT_TRUE(first->party.sockets.empty());
    for (std::size_t index = 0; index < count; ++index) {
      auto socket = host_.listen(os::Address::loopback(0), {}).value();
      const auto bound = host_.local_address(socket.value()).value();
      first->party.sockets.push_back(
          std::make_shared<SharedListener>(host_, std::move(socket), bound));
    }
    first->handover->accepting();
    return first;
  }

  /// Says something at the place as a newer process would, in other words.
  std::string answer_to(Bytes words) {
    const auto met = os::meet_at(place_).value();
    EXPECT_TRUE(met.connection);
    EXPECT_TRUE(os::send_packet(met.connection.get(), words));
    pollfd wanted{met.connection.get(), POLLIN, 0};
    ::poll(&wanted, 1, std::chrono::milliseconds(patience).count());
    std::array<std::byte, HandoverMessage::bytes_max> room{};
    const auto packet = os::receive_packet(met.connection.get(), room).value();
    const auto message = decode_handover(Bytes(room).first(packet.size));
    return message && message->kind == Kind::refuse ? message->text : "";
  }

  /// An older process in the test's hands: it has accepted a newer one's connection.
  class Older {
   public:
    Older(OsHost& host, const os::Address& place)
        : host_(host),
          event_(os::open_event().value()),
          listener_(os::meet_at(place)->listener.release()) {}

    void accept() {
      ASSERT_EQ(wait_readable(listener_.get(), event_.get(), os_now() + patience), Woken::readable);
      talk_.emplace(host_, os::accept_one(listener_.get()).value(), event_.get());
      EXPECT_TRUE(talk_->says(hear(), Kind::ask));
    }
    void offer() {
      socket_ = host_.listen(os::Address::loopback(0), {}).value();
      HandoverMessage offer{.kind = Kind::offer};
      offer.sockets = {{HandoverMessage::Use::listening, false, "here"},
                       {HandoverMessage::Use::meeting, false, "there"}};
      EXPECT_TRUE(talk_->say(offer, std::array{socket_.value(), listener_.get()}));
    }
    Heard hear() { return talk_->hear(os_now() + patience); }
    OsHandoverTalk& talk() { return *talk_; }
    void die() {
      talk_.reset();
      listener_.close();
    }

   private:
    Instant os_now() { return host_.now(); }

    OsHost& host_;
    os::Fd event_;
    os::Fd listener_;
    Descriptor socket_;
    std::optional<OsHandoverTalk> talk_;
  };

  /// A process that begins while `older` offers it a socket.
  std::unique_ptr<Process> begin_after(Older& older, const HandoverOptions& with) {
    auto newer = std::async(std::launch::async, [&] { return begin(with); });
    older.accept();
    older.offer();
    return newer.get();
  }
  std::unique_ptr<Process> begin_after(Older& older) { return begin_after(older, options()); }

  os::TemporaryTree tree_;
  const std::string path_ = tree_.path("meet");
  const os::Address place_ = os::Address::local(path_).value();
  QuietHost host_;
};

TEST_F(OsHandoverTest, EachTakesOverFromTheOneBefore) {
  auto older = begin_first();
  std::vector<os::Address> bound;
  for (const auto& each : older->party.sockets) bound.push_back(each->bound());
  for (int generation = 0; generation < 5; ++generation) {
    auto newer = begin();
    ASSERT_EQ(newer->party.sockets.size(), bound.size());
    for (std::size_t index = 0; index < bound.size(); ++index) {
      EXPECT_EQ(newer->party.sockets[index]->bound(), bound[index]);
      EXPECT_TRUE(newer->party.sockets[index]->goes_on()) << "the older one has it too";
      EXPECT_TRUE(newer->party.sockets[index]->awaited());
    }
    EXPECT_FALSE(older->party.was_told("handed over")) << "before the newer one is ready";
    newer->handover->accepting();
    EXPECT_TRUE(older->party.told("handed over"));
    EXPECT_TRUE(newer->party.told("ours"));
    older = std::move(newer);
    EXPECT_TRUE(std::filesystem::exists(path_)) << "it is the newer one's by now";
  }
  older.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(OsHandoverTest, MoreSocketsThanOneMessageCarries) {
  auto older = begin_first(os::packet_descriptors_max + 3);
  auto newer = begin();
  EXPECT_EQ(newer->party.sockets.size(), older->party.sockets.size());
  newer->handover->accepting();
  EXPECT_TRUE(newer->party.told("ours"));
}

TEST_F(OsHandoverTest, ANewerOneThatDiesBeforeItIsReadyChangesNothing) {
  auto older = begin_first();
  for (int round = 0; round < 3; ++round) {
    const auto newer = begin();
    EXPECT_TRUE(older->party.told("offer"));
  }
  EXPECT_TRUE(older->party.told("kept"));
  EXPECT_FALSE(older->party.was_told("handed over"));
  auto next = begin();
  next->handover->accepting();
  EXPECT_TRUE(older->party.told("handed over"));
  EXPECT_TRUE(next->party.told("ours"));
}

TEST_F(OsHandoverTest, ANewerOneThatIsNotReadyInTimeSaysSo) {
  auto older = begin_first();
  HandoverOptions hasty = options();
  hasty.ready_within = std::chrono::milliseconds(50);
  // On a busy machine the older one's thread may need longer to answer at all.
  HandoverStart begun = OsHandover::meet(host_, hasty);
  while (begun.failure.contains("does not answer")) {
    hasty.ready_within *= 2;
    begun = OsHandover::meet(host_, hasty);
  }
  const auto newer = start(std::move(begun));
  EXPECT_TRUE(newer->party.told("not ready in time"));
  EXPECT_TRUE(newer->party.was_told("somewhere"));
  EXPECT_TRUE(older->party.told("kept"));
  EXPECT_FALSE(newer->party.was_told("ours"));
}

TEST_F(OsHandoverTest, WhoSaysSomethingElseIsRefused) {
  auto older = begin_first();
  std::vector<std::byte> version = encode({.kind = Kind::ask, .text = "tests"});
  version[4] = std::byte{99};
  EXPECT_TRUE(answer_to(version).contains("version 1"));
  EXPECT_EQ(answer_to(to_bytes("GET / HTTP/1.1\r\n\r\n")), "that was no question");
  EXPECT_EQ(answer_to(encode({.kind = Kind::ready})), "that was no question");
  EXPECT_EQ(answer_to(encode({.kind = Kind::ask, .text = "other"})), "this is the service 'tests'");
  EXPECT_FALSE(older->party.was_told("offer"));
  HandoverOptions other = options();
  other.service = "other";
  const auto refused = OsHandover::meet(host_, other);
  EXPECT_EQ(refused.handover, nullptr);
  EXPECT_TRUE(refused.failure.contains("this is the service 'tests'")) << refused.failure;
  // And it serves on.
  auto newer = begin();
  newer->handover->accepting();
  EXPECT_TRUE(newer->party.told("ours"));
}

TEST_F(OsHandoverTest, AnAskerThatGoesAtOnceChangesNothing) {
  auto older = begin_first();
  for (int round = 0; round < 50; ++round) {
    const auto met = os::meet_at(place_).value();
    if (round % 2 == 0) {
      static_cast<void>(
          os::send_packet(met.connection.get(), encode({.kind = Kind::ask, .text = "tests"})));
    }
  }
  auto newer = begin();
  newer->handover->accepting();
  EXPECT_TRUE(newer->party.told("ours"));
}

TEST_F(OsHandoverTest, APathThatIsNoMeetingPlaceIsAClearFailure) {
  tree_.write("meet", "precious");
  const auto file = OsHandover::meet(host_, options());
  EXPECT_EQ(file.handover, nullptr);
  EXPECT_TRUE(file.failure.contains(path_)) << file.failure;
  for (const std::string& path : {std::string(), std::string(200, 'x'), tree_.path("no/folder")}) {
    const auto wrong = OsHandover::meet(host_, {.path = path});
    EXPECT_EQ(wrong.handover, nullptr) << path;
    EXPECT_FALSE(wrong.failure.empty());
  }
  const auto name = OsHandover::meet(host_, {.path = tree_.path("other"), .service = "a\nb"});
  EXPECT_EQ(name.handover, nullptr);
}

TEST_F(OsHandoverTest, WhoWaitsForOneThatEndsIsTheFirst) {
  auto starting = begin();  // it has not said that it accepts
  auto waiting = std::async(std::launch::async, [&] { return begin(); });
  starting.reset();
  const auto next = waiting.get();
  EXPECT_TRUE(next->party.sockets.empty());
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(OsHandoverTest, OfSeveralAtOnceEachHasItsTurn) {
  auto first = begin_first();
  constexpr std::size_t count = 4;
  std::vector<std::future<std::unique_ptr<Process>>> begun;
  for (std::size_t index = 0; index < count; ++index) {
    begun.push_back(std::async(std::launch::async, [&] {
      auto process = begin();
      process->handover->accepting();
      return process;
    }));
  }
  std::vector<std::unique_ptr<Process>> processes;
  for (auto& each : begun) processes.push_back(each.get());
  EXPECT_TRUE(first->party.told("handed over"));
  for (const auto& each : processes) {
    EXPECT_TRUE(each->party.told("ours"));
    EXPECT_EQ(each->party.sockets.size(), 2U);
  }
  const auto gave = std::ranges::count_if(
      processes, [](const auto& each) { return each->party.was_told("handed over"); });
  EXPECT_EQ(static_cast<std::size_t>(gave), count - 1) << "all but the last";
}

TEST_F(OsHandoverTest, AnOlderOneThatDiesLeavesEverything) {
  Older older(host_, place_);
  const auto newer = begin_after(older);
  ASSERT_EQ(newer->party.sockets.size(), 1U);
  older.die();
  EXPECT_TRUE(newer->party.told("ours"));
}

TEST_F(OsHandoverTest, AnOlderOneThatDiesWhenTheNewerIsReadyLeavesEverything) {
  Older older(host_, place_);
  const auto newer = begin_after(older);
  newer->handover->accepting();
  EXPECT_TRUE(older.talk().says(older.hear(), Kind::ready));
  EXPECT_FALSE(newer->party.was_told("ours"));
  older.die();
  EXPECT_TRUE(newer->party.told("ours"));
}

TEST_F(OsHandoverTest, AnOlderOneThatHasAgreedAndDiesLeavesEverything) {
  Older older(host_, place_);
  const auto newer = begin_after(older);
  newer->handover->accepting();
  EXPECT_TRUE(older.talk().says(older.hear(), Kind::ready));
  EXPECT_TRUE(older.talk().say({.kind = Kind::yours}));
  older.die();
  EXPECT_TRUE(newer->party.told("ours"));
}

TEST_F(OsHandoverTest, ANewerOneThatDrainsWhenTheSocketsAreItsOwnWaitsForNobody) {
  Older older(host_, place_);
  const auto newer = begin_after(older);
  newer->handover->accepting();
  EXPECT_TRUE(older.talk().says(older.hear(), Kind::ready));
  EXPECT_FALSE(newer->party.was_told("owned"));
  EXPECT_TRUE(older.talk().say({.kind = Kind::yours}));
  EXPECT_TRUE(newer->party.told("owned"));
  newer->handover.reset();
  EXPECT_FALSE(newer->party.was_told("ours")) << "the older one has not stopped";
  EXPECT_FALSE(std::filesystem::exists(path_)) << "it was the newer one's place";
}

TEST_F(OsHandoverTest, ANewerOneThatDrainsDoesNotSayThatItIsReady) {
  auto older = begin_first();
  auto newer = begin();
  newer->party.agrees = false;
  newer->handover->accepting();
  EXPECT_TRUE(older->party.told("kept"));
  EXPECT_FALSE(older->party.was_told("asked whether"));
  EXPECT_FALSE(newer->party.was_told("own"));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(OsHandoverTest, APlaceThatIsAnothersByNowIsLeftAlone) {
  auto older = begin_first();
  auto newer = begin();
  std::filesystem::remove(path_);
  const auto stranger = os::meet_at(place_);
  ASSERT_TRUE(stranger && stranger->listener);
  newer->handover->accepting();
  EXPECT_TRUE(newer->party.told("ours"));
  older.reset();
  newer.reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(OsHandoverTest, AnOlderOneMayRefuseToTheLast) {
  Older older(host_, place_);
  const auto newer = begin_after(older);
  newer->handover->accepting();
  EXPECT_TRUE(older.talk().says(older.hear(), Kind::ready));
  older.talk().refuse("not today");
  EXPECT_TRUE(newer->party.told("not today"));
  EXPECT_FALSE(newer->party.was_told("ours"));
}

TEST_F(OsHandoverTest, AnOlderOneThatHasBegunToDrainKeepsItsSockets) {
  auto older = begin_first();
  older->party.agrees = false;
  const auto newer = begin();
  newer->handover->accepting();
  EXPECT_TRUE(newer->party.told("it ends"));
  EXPECT_TRUE(older->party.told("kept"));
  EXPECT_FALSE(newer->party.was_told("ours"));
}

TEST_F(OsHandoverTest, AnOlderOneThatTalksNonsenseIsNotFollowed) {
  Older older(host_, place_);
  const auto newer = begin_after(older);
  EXPECT_TRUE(os::send_packet(older.talk().connection(), to_bytes("nonsense")));
  EXPECT_TRUE(newer->party.told("no message"));
  EXPECT_EQ(older.hear(), Heard::message);
  EXPECT_EQ(older.talk().message().kind, Kind::refuse);
}

TEST_F(OsHandoverTest, WhatIsNoListeningSocketIsNotTaken) {
  Older older(host_, place_);
  auto failed =
      std::async(std::launch::async, [&] { return OsHandover::meet(host_, options()).failure; });
  older.accept();
  HandoverMessage offer{.kind = Kind::offer};
  offer.sockets = {{HandoverMessage::Use::listening, false, "here"}};
  const os::Fd stream = os::open_stream(os::AddressFamily::ipv4).value();
  EXPECT_TRUE(older.talk().say(offer, std::array{stream.get()}));
  EXPECT_TRUE(failed.get().contains("gives for here cannot be used"));
}

TEST_F(OsHandoverTest, AnOfferWithoutItsDescriptorsIsNonsense) {
  Older older(host_, place_);
  auto failed =
      std::async(std::launch::async, [&] { return OsHandover::meet(host_, options()).failure; });
  older.accept();
  HandoverMessage offer{.kind = Kind::offer};
  offer.sockets = {{HandoverMessage::Use::listening, false, "here"}};
  EXPECT_TRUE(older.talk().say(offer));
  EXPECT_TRUE(failed.get().contains("no message"));
}

TEST_F(OsHandoverTest, WhatSomebodyHoldsStaysHeld) {
  auto older = begin_first(1);
  older->party.sockets.front()->set_held();
  auto newer = begin();
  ASSERT_EQ(newer->party.sockets.size(), 1U);
  EXPECT_TRUE(newer->party.sockets.front()->held());
}

}  // namespace
}  // namespace weir
