// Tests of a hot restart over Unix sockets: transfer of sockets, processes that die, slow or
// invalid peers.
#include "weir/loop/detail/process/os_handover.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

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
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/io/seqpacket_socket.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::loop::os_handover_test {
namespace {

using Kind = HandoverMessage::Kind;
using ReceiveResult = HandoverConnection::ReceiveResult;

using namespace std::chrono_literals;

constexpr std::chrono::seconds test_timeout{30};

/// A delegate that records its calls.
class RecordingDelegate final : public HandoverDelegate {
 public:
  Sockets sockets;
  std::atomic<bool> agrees = true;
  std::shared_future<void> offer_allowed;  // sockets_to_offer() waits for it, if it is valid

  Sockets sockets_to_offer() override {
    note("offer");
    if (offer_allowed.valid()) offer_allowed.wait();
    return sockets;
  }
  bool confirm_handover(const Sockets&) override {
    note("confirm");
    return agrees;
  }
  void on_handover_failed(const Sockets&) override { note("kept"); }
  void on_handed_over() override { note("handed over"); }
  std::string unaccepted_addresses() override { return "somewhere"; }
  bool prepare_ownership() override {
    note("ready");
    return agrees;
  }
  void on_owned() override { note("owned"); }
  void on_taken_over() override { note("ours"); }
  void on_takeover_failed(std::string why) override { note(why); }

  /// Waits for a recorded call that contains `text`. Returns true if it came in time.
  bool receives(std::string_view text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, test_timeout, [&] { return has(text); });
  }
  /// Returns true if a recorded call contains `text`. Does not wait.
  bool has_received(std::string_view text) {
    const std::lock_guard lock(mutex_);
    return has(text);
  }

 private:
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(what));
    changed_.notify_all();
  }
  bool has(std::string_view text) const {
    return std::ranges::any_of(calls_, [&](const auto& each) { return each.contains(text); });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> calls_;
};

class QuietPlatform : public OsPlatform {
 public:
  void write_line(std::string_view) noexcept override {}
};

class OsHandoverTest : public testing::Test {
 protected:
  /// One process of the service.
  struct Process {
    RecordingDelegate delegate;
    std::unique_ptr<Handover> handover;  // destroyed before the delegate
  };

  HandoverOptions options() const { return {.path = path_, .service = "tests"}; }

  std::unique_ptr<Process> begin(const HandoverOptions& with) {
    return start(OsHandover::meet(platform_, with));
  }
  static std::unique_ptr<Process> start(HandoverStart begun) {
    EXPECT_EQ(begun.failure, "");
    auto process = std::make_unique<Process>();
    process->handover = std::move(begun.handover);
    process->delegate.sockets = process->handover->take_sockets();
    EXPECT_TRUE(process->handover->start(process->delegate));
    return process;
  }
  std::unique_ptr<Process> begin() { return begin(options()); }

  /// Begins the first process, which listens on `count` sockets.
  std::unique_ptr<Process> begin_first(std::size_t count = 2) {
    auto first = begin();
    EXPECT_TRUE(first->delegate.sockets.empty());
    for (std::size_t index = 0; index < count; ++index) {
      auto socket = platform_.listen(os::Address::loopback(0), {}).value();
      const auto bound = platform_.local_address(socket.value()).value();
      first->delegate.sockets.push_back(
          std::make_shared<SharedListener>(platform_, std::move(socket), bound));
    }
    first->handover->on_accepting();
    return first;
  }

  /// Connects as a newer process would, sends other bytes, and returns the text of the rejection.
  std::string answer_to(Bytes request) {
    const auto met = os::connect_or_listen(endpoint_).value();
    EXPECT_TRUE(met.connection);
    EXPECT_TRUE(os::send_message(met.connection.get(), request));
    pollfd wanted{met.connection.get(), POLLIN, 0};
    ::poll(&wanted, 1, std::chrono::milliseconds(test_timeout).count());
    std::array<std::byte, HandoverMessage::bytes_max> room{};
    const auto packet = os::receive_message(met.connection.get(), room).value();
    const auto message = decode_handover(Bytes(room).first(packet.size));
    return message && message->kind == Kind::reject ? message->text : "";
  }

  /// An older process that the test controls step by step.
  class Older {
   public:
    Older(OsPlatform& platform, const os::Address& path)
        : platform_(platform),
          event_(os::open_event().value()),
          listener_(os::connect_or_listen(path)->listener.release()) {}

    void accept() {
      ASSERT_EQ(wait_readable(listener_.get(), event_.get(), os_now() + test_timeout),
                Woken::readable);
      connection_.emplace(platform_, os::accept_one(listener_.get()).value(), event_.get());
      EXPECT_TRUE(connection_->is_message(receive(), Kind::request));
    }
    void offer() {
      socket_ = platform_.listen(os::Address::loopback(0), {}).value();
      HandoverMessage offer{.kind = Kind::offer};
      offer.sockets = {{HandoverMessage::Use::listening, false, "here"},
                       {HandoverMessage::Use::rendezvous, false, "there"}};
      EXPECT_TRUE(connection_->send(offer, std::array{socket_.value(), listener_.get()}));
      EXPECT_TRUE(connection_->is_message(receive(), Kind::received));
    }
    ReceiveResult receive() { return connection_->receive(os_now() + test_timeout); }
    OsHandoverConnection& connection() { return *connection_; }
    void die() {
      connection_.reset();
      listener_.close();
    }

   private:
    Instant os_now() { return platform_.now(); }

    OsPlatform& platform_;
    os::Fd event_;
    os::Fd listener_;
    Descriptor socket_;
    std::optional<OsHandoverConnection> connection_;
  };

  /// Begins a process while `older` offers it a socket.
  std::unique_ptr<Process> begin_after(Older& older, const HandoverOptions& with) {
    auto newer = std::async(std::launch::async, [&] { return begin(with); });
    older.accept();
    older.offer();
    return newer.get();
  }
  std::unique_ptr<Process> begin_after(Older& older) { return begin_after(older, options()); }
  /// Begins a process to which `older` transfers its sockets.
  std::unique_ptr<Process> begin_as_owner(Older& older) {
    auto newer = begin_after(older);
    newer->handover->on_accepting();
    EXPECT_TRUE(older.connection().is_message(older.receive(), Kind::ready));
    EXPECT_TRUE(older.connection().send({.kind = Kind::transferred}));
    return newer;
  }

  os::TemporaryTree tree_;
  const std::string path_ = tree_.path("meet");
  const os::Address endpoint_ = os::Address::local(path_).value();
  QuietPlatform platform_;
};

TEST_F(OsHandoverTest, EachProcessTakesOverFromTheOneBefore) {
  auto older = begin_first();
  std::vector<os::Address> bound;
  for (const auto& each : older->delegate.sockets) bound.push_back(each->bound());
  for (int generation = 0; generation < 5; ++generation) {
    auto newer = begin();
    ASSERT_EQ(newer->delegate.sockets.size(), bound.size());
    for (std::size_t index = 0; index < bound.size(); ++index) {
      EXPECT_EQ(newer->delegate.sockets[index]->bound(), bound[index]);
      EXPECT_TRUE(newer->delegate.sockets[index]->stays_open_elsewhere())
          << "the older process has it too";
      EXPECT_TRUE(newer->delegate.sockets[index]->peer_waits_for_accept());
    }
    EXPECT_FALSE(older->delegate.has_received("handed over"))
        << "before the newer process is ready";
    newer->handover->on_accepting();
    EXPECT_TRUE(older->delegate.receives("handed over"));
    EXPECT_TRUE(newer->delegate.receives("ours"));
    older = std::move(newer);
    EXPECT_TRUE(std::filesystem::exists(path_)) << "the newer process owns it now";
  }
  older.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(OsHandoverTest, HandsOverMoreSocketsThanOneMessageCarries) {
  auto older = begin_first(os::message_descriptors_max + 3);
  auto newer = begin();
  EXPECT_EQ(newer->delegate.sockets.size(), older->delegate.sockets.size());
  newer->handover->on_accepting();
  EXPECT_TRUE(newer->delegate.receives("ours"));
}

TEST_F(OsHandoverTest, ANewerProcessThatDiesBeforeItIsReadyChangesNothing) {
  auto older = begin_first();
  for (int round = 0; round < 3; ++round) {
    const auto newer = begin();
    EXPECT_TRUE(older->delegate.receives("offer"));
  }
  EXPECT_TRUE(older->delegate.receives("kept"));
  EXPECT_FALSE(older->delegate.has_received("handed over"));
  auto next = begin();
  next->handover->on_accepting();
  EXPECT_TRUE(older->delegate.receives("handed over"));
  EXPECT_TRUE(next->delegate.receives("ours"));
}

TEST_F(OsHandoverTest, ANewerProcessReportsThatItIsNotReadyInTime) {
  auto older = begin_first();
  HandoverOptions hasty = options();
  hasty.ready_timeout = std::chrono::milliseconds(50);
  // The older process' thread may need longer to answer on a busy machine.
  HandoverStart begun = OsHandover::meet(platform_, hasty);
  while (begun.failure.contains("did not answer")) {
    hasty.ready_timeout *= 2;
    begun = OsHandover::meet(platform_, hasty);
  }
  const auto newer = start(std::move(begun));
  EXPECT_TRUE(newer->delegate.receives("not ready in time"));
  EXPECT_TRUE(newer->delegate.has_received("somewhere"));
  EXPECT_TRUE(older->delegate.receives("kept"));
  EXPECT_FALSE(newer->delegate.has_received("ours"));
}

TEST_F(OsHandoverTest, RejectsInvalidRequests) {
  auto older = begin_first();
  std::vector<std::byte> version = encode({.kind = Kind::request, .text = "tests"});
  version[4] = std::byte{99};
  EXPECT_TRUE(answer_to(version).contains("version 3"));
  EXPECT_EQ(answer_to(to_bytes("GET / HTTP/1.1\r\n\r\n")), "not a request");
  EXPECT_EQ(answer_to(encode({.kind = Kind::ready})), "not a request");
  EXPECT_EQ(answer_to(encode({.kind = Kind::request, .text = "other"})),
            "this is the service 'tests'");
  EXPECT_FALSE(older->delegate.has_received("offer"));
  HandoverOptions other = options();
  other.service = "other";
  const auto refused = OsHandover::meet(platform_, other);
  EXPECT_EQ(refused.handover, nullptr);
  EXPECT_TRUE(refused.failure.contains("this is the service 'tests'")) << refused.failure;
  // The older process still hands over.
  auto newer = begin();
  newer->handover->on_accepting();
  EXPECT_TRUE(newer->delegate.receives("ours"));
}

TEST_F(OsHandoverTest, AConnectionThatClosesImmediatelyChangesNothing) {
  auto older = begin_first();
  for (int round = 0; round < 50; ++round) {
    const auto met = os::connect_or_listen(endpoint_).value();
    if (round % 2 == 0) {
      static_cast<void>(
          os::send_message(met.connection.get(), encode({.kind = Kind::request, .text = "tests"})));
    }
  }
  auto newer = begin();
  newer->handover->on_accepting();
  EXPECT_TRUE(newer->delegate.receives("ours"));
}

TEST_F(OsHandoverTest, AnUnusablePathFailsWithAClearError) {
  tree_.write("meet", "precious");
  const auto file = OsHandover::meet(platform_, options());
  EXPECT_EQ(file.handover, nullptr);
  EXPECT_TRUE(file.failure.contains(path_)) << file.failure;
  for (const std::string& path : {std::string(), std::string(200, 'x'), tree_.path("no/folder")}) {
    const auto wrong = OsHandover::meet(platform_, {.path = path});
    EXPECT_EQ(wrong.handover, nullptr) << path;
    EXPECT_FALSE(wrong.failure.empty());
  }
  const auto name = OsHandover::meet(platform_, {.path = tree_.path("other"), .service = "a\nb"});
  EXPECT_EQ(name.handover, nullptr);
}

TEST_F(OsHandoverTest, AProcessBecomesTheFirstIfTheOlderOneEnds) {
  auto starting = begin();  // it does not accept yet
  auto waiting = std::async(std::launch::async, [&] { return begin(); });
  starting.reset();
  const auto next = waiting.get();
  EXPECT_TRUE(next->delegate.sockets.empty());
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(OsHandoverTest, SeveralNewerProcessesTakeOverInTurn) {
  auto first = begin_first();
  constexpr std::size_t count = 4;
  std::vector<std::future<std::unique_ptr<Process>>> begun;
  for (std::size_t index = 0; index < count; ++index) {
    begun.push_back(std::async(std::launch::async, [&] {
      auto process = begin();
      process->handover->on_accepting();
      return process;
    }));
  }
  std::vector<std::unique_ptr<Process>> processes;
  for (auto& each : begun) processes.push_back(each.get());
  EXPECT_TRUE(first->delegate.receives("handed over"));
  for (const auto& each : processes) {
    EXPECT_TRUE(each->delegate.receives("ours"));
    EXPECT_EQ(each->delegate.sockets.size(), 2U);
  }
  const auto gave = std::ranges::count_if(
      processes, [](const auto& each) { return each->delegate.has_received("handed over"); });
  EXPECT_EQ(static_cast<std::size_t>(gave), count - 1) << "all but the last";
}

TEST_F(OsHandoverTest, AnOlderProcessThatDiesLeavesItsSockets) {
  Older older(platform_, endpoint_);
  const auto newer = begin_after(older);
  ASSERT_EQ(newer->delegate.sockets.size(), 1U);
  older.die();
  EXPECT_TRUE(newer->delegate.receives("ours"));
}

TEST_F(OsHandoverTest, AnOlderProcessThatDiesAfterReadyLeavesItsSockets) {
  Older older(platform_, endpoint_);
  const auto newer = begin_after(older);
  newer->handover->on_accepting();
  EXPECT_TRUE(older.connection().is_message(older.receive(), Kind::ready));
  EXPECT_FALSE(newer->delegate.has_received("ours"));
  older.die();
  EXPECT_TRUE(newer->delegate.receives("ours"));
}

TEST_F(OsHandoverTest, AnOlderProcessThatDiesAfterTheTransferLeavesItsSockets) {
  Older older(platform_, endpoint_);
  const auto newer = begin_as_owner(older);
  older.die();
  EXPECT_TRUE(newer->delegate.receives("ours"));
}

TEST_F(OsHandoverTest, ANewerProcessThatDrainsAsOwnerDoesNotWait) {
  Older older(platform_, endpoint_);
  const auto newer = begin_after(older);
  newer->handover->on_accepting();
  EXPECT_TRUE(older.connection().is_message(older.receive(), Kind::ready));
  EXPECT_FALSE(newer->delegate.has_received("owned"));
  EXPECT_TRUE(older.connection().send({.kind = Kind::transferred}));
  EXPECT_TRUE(newer->delegate.receives("owned"));
  newer->handover.reset();
  EXPECT_FALSE(newer->delegate.has_received("ours")) << "the older process has not stopped";
  EXPECT_FALSE(std::filesystem::exists(path_)) << "the newer process owned the path";
}

TEST_F(OsHandoverTest, ANewerProcessClosesItsConnectionToAnOlderOneThatHasStopped) {
  Older older(platform_, endpoint_);
  const auto newer = begin_as_owner(older);
  EXPECT_TRUE(older.connection().send({.kind = Kind::stopped}));
  EXPECT_TRUE(newer->delegate.receives("ours"));
  EXPECT_EQ(older.receive(), ReceiveResult::closed);
}

TEST_F(OsHandoverTest, ADrainingNewerProcessDoesNotReportReady) {
  auto older = begin_first();
  auto newer = begin();
  newer->delegate.agrees = false;
  newer->handover->on_accepting();
  EXPECT_TRUE(older->delegate.receives("kept"));
  EXPECT_FALSE(older->delegate.has_received("confirm"));
  EXPECT_FALSE(newer->delegate.has_received("own"));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(OsHandoverTest, KeepsAPathThatAnotherProcessHasTaken) {
  auto older = begin_first();
  auto newer = begin();
  std::filesystem::remove(path_);
  const auto stranger = os::connect_or_listen(endpoint_);
  ASSERT_TRUE(stranger && stranger->listener);
  newer->handover->on_accepting();
  EXPECT_TRUE(newer->delegate.receives("ours"));
  older.reset();
  newer.reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(OsHandoverTest, KeepsThePathUntilItsThreadHasEnded) {
  const auto process = begin_first();
  std::promise<void> allow_offer;
  process->delegate.offer_allowed = allow_offer.get_future();
  const auto newer = os::connect_or_listen(endpoint_).value();
  ASSERT_TRUE(
      os::send_message(newer.connection.get(), encode({.kind = Kind::request, .text = "tests"})));
  ASSERT_TRUE(process->delegate.receives("offer"));
  auto is_kept = std::async(std::launch::async, [&] {
    ::poll(nullptr, 0, 50);  // until the destructor waits for the thread
    const bool has_owner = static_cast<bool>(os::connect_or_listen(endpoint_).value().connection);
    allow_offer.set_value();
    return has_owner;
  });
  process->handover.reset();
  EXPECT_TRUE(is_kept.get());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(OsHandoverTest, AnOlderProcessCanRejectAfterReady) {
  Older older(platform_, endpoint_);
  const auto newer = begin_after(older);
  newer->handover->on_accepting();
  EXPECT_TRUE(older.connection().is_message(older.receive(), Kind::ready));
  older.connection().reject("not today");
  EXPECT_TRUE(newer->delegate.receives("not today"));
  EXPECT_FALSE(newer->delegate.has_received("ours"));
}

TEST_F(OsHandoverTest, ADrainingOlderProcessKeepsItsSockets) {
  auto older = begin_first();
  older->delegate.agrees = false;
  const auto newer = begin();
  newer->handover->on_accepting();
  EXPECT_TRUE(newer->delegate.receives("the older process is shutting down"));
  EXPECT_TRUE(older->delegate.receives("kept"));
  EXPECT_FALSE(newer->delegate.has_received("ours"));
}

TEST_F(OsHandoverTest, RejectsAnOlderProcessThatSendsInvalidMessages) {
  Older older(platform_, endpoint_);
  const auto newer = begin_after(older);
  EXPECT_TRUE(os::send_message(older.connection().connection(), to_bytes("nonsense")));
  EXPECT_TRUE(newer->delegate.receives("invalid message"));
  EXPECT_EQ(older.receive(), ReceiveResult::message);
  EXPECT_EQ(older.connection().message().kind, Kind::reject);
}

TEST_F(OsHandoverTest, RejectsASocketThatDoesNotListen) {
  Older older(platform_, endpoint_);
  auto failed = std::async(std::launch::async,
                           [&] { return OsHandover::meet(platform_, options()).failure; });
  older.accept();
  HandoverMessage offer{.kind = Kind::offer};
  offer.sockets = {{HandoverMessage::Use::listening, false, "here"}};
  const os::Fd stream = os::open_stream(os::AddressFamily::ipv4).value();
  EXPECT_TRUE(older.connection().send(offer, std::array{stream.get()}));
  EXPECT_TRUE(failed.get().contains("socket for here that cannot be used"));
}

TEST_F(OsHandoverTest, RejectsAnOfferWithoutItsDescriptors) {
  Older older(platform_, endpoint_);
  auto failed = std::async(std::launch::async,
                           [&] { return OsHandover::meet(platform_, options()).failure; });
  older.accept();
  HandoverMessage offer{.kind = Kind::offer};
  offer.sockets = {{HandoverMessage::Use::listening, false, "here"}};
  EXPECT_TRUE(older.connection().send(offer));
  EXPECT_TRUE(failed.get().contains("invalid message"));
}

TEST_F(OsHandoverTest, ExternallyOwnedSocketsStayExternallyOwned) {
  auto older = begin_first(1);
  older->delegate.sockets.front()->set_externally_owned();
  auto newer = begin();
  ASSERT_EQ(newer->delegate.sockets.size(), 1U);
  EXPECT_TRUE(newer->delegate.sockets.front()->externally_owned());
}

/// Both ends of a connection between two processes.
class OsHandoverConnectionTest : public testing::Test {
 protected:
  OsHandoverConnectionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()),
              0);
    ours_.emplace(platform_, os::Fd(ends[0]), event_.get());
    theirs_.emplace(platform_, os::Fd(ends[1]), other_event_.get());
  }
  ReceiveResult receive() { return ours_->receive(after(platform_.now(), test_timeout)); }
  ReceiveResult receive_now() { return ours_->receive(platform_.now()); }

  QuietPlatform platform_;
  const os::Fd event_ = os::open_event().value();
  const os::Fd other_event_ = os::open_event().value();
  std::optional<OsHandoverConnection> ours_;
  std::optional<OsHandoverConnection> theirs_;
};

TEST_F(OsHandoverConnectionTest, AcceptsAProcessOfThisUser) {
  EXPECT_EQ(ours_->peer_rejection_reason(), "");
}

/// Returns true if this process may act as `user` for a while. Even root may not do so in a user
/// namespace without that user.
bool can_act_as(uid_t user) {
  if (::geteuid() != 0 || ::seteuid(user) != 0) return false;
  EXPECT_EQ(::seteuid(0), 0);
  return true;
}

/// Returns why a process of user `own` rejects a connection to a process of user `peer`.
std::string rejection_of(uid_t own, uid_t peer) {
  QuietPlatform platform;
  const os::Fd event = os::open_event().value();
  std::array<int, 2> ends{};
  EXPECT_EQ(::seteuid(peer), 0);
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  EXPECT_EQ(::seteuid(0), 0);
  const os::Fd other(ends[1]);
  OsHandoverConnection connection(platform, os::Fd(ends[0]), event.get());
  EXPECT_EQ(::seteuid(own), 0);
  std::string reason = connection.peer_rejection_reason();
  EXPECT_EQ(::seteuid(0), 0);
  return reason;
}

TEST(OsHandoverConnection, RejectsOtherUsersExceptRoot) {
  if (!can_act_as(65533) || !can_act_as(65534)) {
    GTEST_SKIP() << "only root can act as other users, if they exist in its user namespace";
  }
  EXPECT_EQ(rejection_of(0, 0), "");
  EXPECT_EQ(rejection_of(0, 65533), "the process there belongs to user 65533");
  EXPECT_EQ(rejection_of(65534, 0), "");
  EXPECT_EQ(rejection_of(65534, 65534), "");
  EXPECT_EQ(rejection_of(65534, 65533), "the process there belongs to user 65533");
}

TEST_F(OsHandoverConnectionTest, ReceivesMessagesInOrder) {
  EXPECT_TRUE(theirs_->send({.kind = Kind::request, .text = "shop"}));
  EXPECT_TRUE(theirs_->send({.kind = Kind::ready}));
  EXPECT_EQ(receive(), ReceiveResult::message);
  EXPECT_EQ(ours_->message(), (HandoverMessage{.kind = Kind::request, .text = "shop"}));
  EXPECT_TRUE(ours_->is_message(ReceiveResult::message, Kind::request));
  EXPECT_FALSE(ours_->is_message(ReceiveResult::message, Kind::ready));
  EXPECT_FALSE(ours_->is_message(ReceiveResult::closed, Kind::request));
  EXPECT_EQ(receive(), ReceiveResult::message);
  EXPECT_EQ(ours_->message().kind, Kind::ready);
  EXPECT_EQ(receive_now(), ReceiveResult::timed_out);
  theirs_->reject(std::string(300, 'x') + "\n");
  EXPECT_EQ(receive(), ReceiveResult::message);
  EXPECT_EQ(ours_->message(),
            (HandoverMessage{.kind = Kind::reject, .text = std::string(255, 'x')}));
}

TEST_F(OsHandoverConnectionTest, ReceivesADescriptorForEachSocket) {
  auto pipe = os::open_pipe().value();
  HandoverMessage offer{.kind = Kind::offer};
  offer.sockets = {{HandoverMessage::Use::listening, false, "a"},
                   {HandoverMessage::Use::rendezvous, false, "b"}};
  EXPECT_TRUE(theirs_->send(offer, std::array{pipe.write_end.get(), pipe.read_end.get()}));
  pipe.write_end.close();
  EXPECT_EQ(receive(), ReceiveResult::message);
  auto sockets = ours_->take_sockets();
  ASSERT_EQ(sockets.size(), 2U);
  EXPECT_EQ(::write(sockets[0].value(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), 1);
  sockets.clear();
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), 0) << "every copy is closed";
  EXPECT_TRUE(ours_->take_sockets().empty());
  EXPECT_TRUE(theirs_->send(offer, std::array{pipe.read_end.get()}));
  EXPECT_EQ(receive(), ReceiveResult::invalid) << "a descriptor is missing";
  EXPECT_TRUE(theirs_->send({.kind = Kind::ready}, std::array{pipe.read_end.get()}));
  EXPECT_EQ(receive(), ReceiveResult::invalid) << "a descriptor too many";
}

TEST_F(OsHandoverConnectionTest, DropsTheSocketsThatNoCodeTook) {
  auto pipe = os::open_pipe().value();
  HandoverMessage offer{.kind = Kind::offer};
  offer.sockets = {{HandoverMessage::Use::listening, false, "a"}};
  EXPECT_TRUE(theirs_->send(offer, std::array{pipe.write_end.get()}));
  EXPECT_TRUE(theirs_->send({.kind = Kind::ready}));
  pipe.write_end.close();
  EXPECT_EQ(receive(), ReceiveResult::message);
  EXPECT_EQ(receive(), ReceiveResult::message);
  EXPECT_TRUE(ours_->take_sockets().empty());
  char byte = 0;
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), 0);
}

TEST_F(OsHandoverConnectionTest, DistinguishesInvalidBytesFromAnotherVersion) {
  EXPECT_TRUE(os::send_message(theirs_->connection(), to_bytes("nonsense")));
  EXPECT_EQ(receive(), ReceiveResult::invalid);
  auto bytes = encode({.kind = Kind::ready});
  bytes[4] = std::byte{HandoverMessage::version + 1};
  EXPECT_TRUE(os::send_message(theirs_->connection(), bytes));
  EXPECT_EQ(receive(), ReceiveResult::version_mismatch);
  const std::vector<std::byte> huge(HandoverMessage::bytes_max + 1);
  EXPECT_TRUE(os::send_message(theirs_->connection(), huge));
  EXPECT_EQ(receive(), ReceiveResult::invalid) << "longer than any message";
}

TEST_F(OsHandoverConnectionTest, AnInterruptionComesFirstAndIsConsumed) {
  EXPECT_TRUE(theirs_->send({.kind = Kind::ready}));
  os::signal_event(event_.get());
  os::signal_event(event_.get());
  EXPECT_EQ(receive(), ReceiveResult::interrupted);
  EXPECT_EQ(receive(), ReceiveResult::message);
  os::signal_event(event_.get());
  EXPECT_EQ(ours_->receive_uninterrupted(platform_.now()), ReceiveResult::timed_out);
  os::signal_event(other_event_.get());
  EXPECT_EQ(receive_now(), ReceiveResult::timed_out) << "the event of another connection";
}

TEST_F(OsHandoverConnectionTest, ReceivesEarlierMessagesBeforeTheEnd) {
  EXPECT_TRUE(theirs_->send({.kind = Kind::stopped}));
  theirs_.reset();
  EXPECT_EQ(receive(), ReceiveResult::message);
  EXPECT_EQ(receive(), ReceiveResult::closed);
  EXPECT_EQ(receive(), ReceiveResult::closed);
  EXPECT_EQ(ours_->send({.kind = Kind::ready}).error(), system_error(EPIPE));
}

TEST_F(OsHandoverConnectionTest, NothingArrivesAfterReceivingIsShutDown) {
  EXPECT_TRUE(theirs_->send({.kind = Kind::ready}));
  ours_->shut_down_receiving();
  EXPECT_EQ(theirs_->send({.kind = Kind::transferred}).error(), system_error(EPIPE));
  EXPECT_EQ(receive(), ReceiveResult::message) << "it was sent before";
  EXPECT_EQ(receive(), ReceiveResult::closed);
  EXPECT_TRUE(ours_->send({.kind = Kind::stopped})) << "this direction stays open";
}

TEST_F(OsHandoverConnectionTest, WaitsUntilADescriptorIsReadable) {
  auto pipe = os::open_pipe().value();
  const Instant begun = platform_.now();
  EXPECT_EQ(wait_readable(pipe.read_end.get(), event_.get(), after(begun, 2ms)), Woken::timed_out);
  EXPECT_GE(platform_.now() - begun, 2ms);
  EXPECT_EQ(::write(pipe.write_end.get(), "x", 1), 1);
  EXPECT_EQ(wait_readable(pipe.read_end.get(), event_.get(), never), Woken::readable);
  os::signal_event(event_.get());
  EXPECT_EQ(wait_readable(pipe.read_end.get(), event_.get(), never), Woken::interrupted);
  EXPECT_EQ(wait_readable(pipe.read_end.get(), event_.get(), never), Woken::readable)
      << "the event was reset";
  EXPECT_EQ(wait_readable(-1, event_.get(), platform_.now()), Woken::timed_out);
}

// Each silent connection used to have its time after the one before.
TEST_F(OsHandoverTest, SilentConnectionsDoNotHoldUpANewerProcess) {
  auto older = begin_first();
  std::vector<os::Fd> silent;
  for (int each = 0; each < 60; ++each) {
    auto met = os::connect_or_listen(endpoint_);
    ASSERT_TRUE(met && met->connection) << each;
    silent.push_back(std::move(met->connection));
  }
  const Instant begun = platform_.now();
  auto newer = begin();
  newer->handover->on_accepting();
  EXPECT_TRUE(older->delegate.receives("handed over"));
  EXPECT_TRUE(newer->delegate.receives("ours"));
  EXPECT_LT(platform_.now() - begun, std::chrono::seconds(5))
      << "the time of one silent connection";
}

TEST_F(OsHandoverTest, ErrorsNameThePath) {
  const std::string prefix = "cannot take sockets over at '";
  EXPECT_EQ(OsHandover::meet(platform_, {.path = ""}).failure,
            prefix + "': the path must have 1 to 107 bytes");
  const std::string missing = tree_.path("no/folder");
  EXPECT_EQ(OsHandover::meet(platform_, {.path = missing}).failure,
            prefix + missing + "': No such file or directory");
}

}  // namespace
}  // namespace weir::loop::os_handover_test
