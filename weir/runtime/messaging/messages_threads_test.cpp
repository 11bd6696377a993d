// Tests of mailboxes, broadcasts and foreign pointers on real threads, for the thread sanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "weir/runtime/foreign_ptr.hpp"
#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/detail/mailbox_queue.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::messages_threads_test {
namespace {

constexpr unsigned cores = 3;
constexpr unsigned outsiders = 2;

RuntimeOptions options_of(BackendChoice backend) {
  RuntimeOptions options;
  options.announce = false;
  options.handle_signals = false;
  options.backend = backend;
  options.cores = cores;
  options.pin = false;
  return options;
}

/// Runs `body(scope)` on each core, and meanwhile `outside(number)` on threads without a loop.
template <class Body, class Outside>
void run_with_outsiders(BackendChoice backend, Body body, Outside outside) {
  Runtime runtime(options_of(backend));
  std::vector<std::jthread> threads;
  for (unsigned number = 0; number < outsiders; ++number) threads.emplace_back(outside, number);
  EXPECT_EQ(runtime.run_on_each_core(std::ref(body)), 0);
}

TEST(MailboxQueueOnThreads, AThreadThatSeesTheCloseSeesWhatTheCloserDidBefore) {
  detail::MailboxQueue queue(1, OverflowPolicy::wait);
  bool finished = false;
  std::jthread closer([&] {
    finished = true;
    queue.close();
  });
  while (!queue.closed()) std::this_thread::yield();
  EXPECT_TRUE(finished);
}

class OnThreads : public testing::TestWithParam<BackendChoice> {};
INSTANTIATE_TEST_SUITE_P(On, OnThreads,
                         testing::Values(BackendChoice::epoll, BackendChoice::automatic),
                         [](const auto& backend) {
                           return backend.param == BackendChoice::epoll ? "epoll" : "automatic";
                         });

struct Letter {
  unsigned sender;
  std::unique_ptr<int> number;
};

/// Scenario in which all threads send to core 0. Each sender's letters arrive in order and
/// exactly once.
class Post {
 public:
  explicit Post(std::size_t capacity) : box_({.capacity = capacity}) {}

  static constexpr int letters = 1500;
  static constexpr unsigned senders = cores - 1 + outsiders;

  Task<> on_core(Scope& scope) {
    if (scope.loop().core() == 0) return receive();
    return send(scope.loop().core() - 1);
  }
  void outside(unsigned number) {
    for (int i = 0; i < letters; ++i) {
      Letter letter(cores - 1 + number, std::make_unique<int>(i));
      while (!box_.try_send(std::move(letter))) std::this_thread::yield();
    }
    done();
  }
  void check() const {
    for (const int count : received_) EXPECT_EQ(count, letters);
  }

 private:
  Task<> send(unsigned sender) {
    for (int i = 0; i < letters; ++i) {
      Letter letter(sender, std::make_unique<int>(i));
      // Some sends time out and are repeated.
      const Duration patience = i % 7 == 0 ? Duration(10us) : Duration(1h);
      while (!co_await timeout(patience, box_.send_from(letter))) {
      }
      EXPECT_EQ(letter.number, nullptr);
    }
    done();
  }
  void done() {
    if (left_.fetch_sub(1) == 1) box_.close();
  }
  Task<> receive() {
    for (int calls = 0;; ++calls) {
      const Duration patience = calls % 5 == 0 ? Duration(10us) : Duration(1h);
      const auto letter = co_await timeout(patience, box_.receive());
      if (letter) {
        EXPECT_EQ(*letter->number, received_[letter->sender]);
        ++received_[letter->sender];
      } else if (letter.error() == Errc::end_of_stream) {
        co_return;
      } else {
        EXPECT_EQ(letter.error(), Errc::timed_out);
      }
    }
  }

  Mailbox<Letter> box_;
  std::atomic<unsigned> left_ = senders;
  std::array<int, senders> received_{};
};

TEST_P(OnThreads, AllThreadsSendToOneReceiver) {
  for (const std::size_t capacity : {1U, 3U, 64U, 100'000U}) {
    SCOPED_TRACE(capacity);
    Post post(capacity);
    const auto body = [&](Scope& scope) { return post.on_core(scope); };
    run_with_outsiders(GetParam(), body, [&](unsigned number) { post.outside(number); });
    post.check();
  }
}

/// Scenario in which core 0 selects between two mailboxes, a broadcast and a short sleep, while all
/// other threads send. Cases lose while other threads post them.
class Selection {
 public:
  static constexpr int rounds = 1000;
  static constexpr unsigned senders = cores - 1 + outsiders;

  Task<> on_core(Scope& scope) { return scope.loop().core() == 0 ? receive() : send(); }
  void outside(unsigned) {
    for (int round = 0; round < rounds; ++round) {
      while (!box_of(round).try_send(int{round})) std::this_thread::yield();
      EXPECT_TRUE(news_.publish(round));
    }
    done();
  }
  void check() const {
    constexpr int all = static_cast<int>(senders) * rounds;
    EXPECT_EQ(received_[0], all / 2);
    EXPECT_EQ(received_[1], all / 2);
    EXPECT_EQ(heard_, all);
  }

 private:
  Mailbox<int>& box_of(int round) { return boxes_[round % 2 == 0 ? 0 : 1]; }
  Task<> send() {
    for (int round = 0; round < rounds; ++round) {
      EXPECT_TRUE(co_await box_of(round).send(round));
      EXPECT_TRUE(news_.publish(round));
    }
    done();
  }
  void done() {
    if (left_.fetch_sub(1) != 1) return;
    boxes_[0].close();
    boxes_[1].close();
    news_.close();
  }
  Task<> receive() {
    for (int calls = 0;; ++calls) {
      const Duration patience = calls % 5 == 0 ? Duration(10us) : Duration(1h);
      const auto first = co_await select(boxes_[0].receive(), subscription_.receive(),
                                         boxes_[1].receive(), sleep(patience));
      EXPECT_TRUE(first);
      if (first->index() == 3) continue;
      if (first->index() == 0 && std::get<0>(*first)) {
        ++received_[0];
      } else if (first->index() == 1 && std::get<1>(*first)) {
        ++heard_;
      } else if (first->index() == 2 && std::get<2>(*first)) {
        ++received_[1];
      } else {
        break;  // one has ended, and the others get nothing more
      }
    }
    while (boxes_[0].try_receive()) ++received_[0];
    while (boxes_[1].try_receive()) ++received_[1];
    while (co_await subscription_.receive()) ++heard_;
  }

  std::array<Mailbox<int>, 2> boxes_;
  Broadcast<int> news_{BroadcastOptions{.capacity = std::size_t{senders} * rounds}};
  Broadcast<int>::Subscription subscription_ = news_.subscribe();
  std::atomic<unsigned> left_ = senders;
  std::array<int, 2> received_{};
  int heard_ = 0;
};

TEST_P(OnThreads, AllThreadsSendToOneSelect) {
  Selection selection;
  const auto body = [&](Scope& scope) { return selection.on_core(scope); };
  run_with_outsiders(GetParam(), body, [&](unsigned number) { selection.outside(number); });
  selection.check();
}

TEST_P(OnThreads, ACloseFromAnotherThreadEndsAllWaits) {
  for (int round = 0; round < 50; ++round) {
    Mailbox<int> empty;
    Mailbox<int> full({.capacity = 1});
    EXPECT_TRUE(full.try_send(0));
    Broadcast<int> silent;
    std::atomic<int> ended = 0;
    const auto body = [&](Scope& scope) -> Task<> {
      auto subscription = silent.subscribe();
      const auto heard = co_await subscription.receive();
      EXPECT_EQ(heard.error(), Errc::end_of_stream);
      if (scope.loop().core() == 0) {
        const auto value = co_await empty.receive();
        EXPECT_EQ(value.error(), Errc::end_of_stream);
      } else {
        const auto sent = co_await full.send(1);
        EXPECT_EQ(sent.error(), Errc::closed);
      }
      ended.fetch_add(1);
    };
    run_with_outsiders(GetParam(), body, [&](unsigned number) {
      if (number == 0) {
        silent.close();
      } else {
        empty.close();
        full.close();
      }
    });
    EXPECT_EQ(ended.load(), static_cast<int>(cores));
  }
}

TEST_P(OnThreads, AStopFromAnotherThreadEndsAllWaits) {
  for (int round = 0; round < 50; ++round) {
    Mailbox<int> box({.capacity = 1});
    EXPECT_TRUE(box.try_send(0));
    Mailbox<int> empty;
    Broadcast<int> silent;
    std::atomic<unsigned> waiting = 0;
    Runtime runtime(options_of(GetParam()));
    std::jthread stopper([&] {
      while (waiting.load() < cores) std::this_thread::yield();
      runtime.stop();
    });
    const auto body = [&](Scope& scope) -> Task<> {
      waiting.fetch_add(1);
      if (scope.loop().core() == 0) {
        const auto value = co_await empty.receive();
        EXPECT_EQ(value.error(), Errc::cancelled);
      } else if (scope.loop().core() == 1) {
        const auto sent = co_await box.send(1);
        EXPECT_EQ(sent.error(), Errc::cancelled);
      } else {
        auto subscription = silent.subscribe();
        const auto value = co_await subscription.receive();
        EXPECT_EQ(value.error(), Errc::cancelled);
      }
    };
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
  }
}

/// Scenario in which all threads publish, and each core has a subscriber. All values of one
/// publisher arrive in order, except for counted gaps.
class Square {
 public:
  explicit Square(const BroadcastOptions& options) : broadcast_(options) {}

  static constexpr int words = 1000;
  static constexpr unsigned publishers = cores + outsiders;

  Task<> on_core(Scope& scope) {
    scope.spawn(listen());
    while (listening_.load() < cores) co_await yield();
    for (int i = 0; i < words; ++i) {
      say(scope.loop().core(), i);
      if (i % 16 == 0) co_await yield();
    }
    done();
  }
  void outside(unsigned number) {
    while (listening_.load() < cores) std::this_thread::yield();
    for (int i = 0; i < words; ++i) say(cores + number, i);
    done();
  }

 private:
  using Word = std::pair<unsigned, int>;

  void say(unsigned publisher, int number) {
    EXPECT_TRUE(broadcast_.publish(Word(publisher, number)));
  }
  void done() {
    if (left_.fetch_sub(1) == 1) broadcast_.close();
  }
  Task<> listen() {
    auto subscription = broadcast_.subscribe();
    listening_.fetch_add(1);
    std::array<int, publishers> last;
    last.fill(-1);
    std::uint64_t heard = 0;
    for (int calls = 0;; ++calls) {
      const Duration patience = calls % 5 == 0 ? Duration(10us) : Duration(1h);
      const auto word = co_await timeout(patience, subscription.receive());
      if (word) {
        const auto& [publisher, number] = **word;
        EXPECT_GT(number, last[publisher]);
        last[publisher] = number;
        ++heard;
      } else if (word.error() == Errc::end_of_stream) {
        break;
      } else {
        EXPECT_TRUE(word.error() == Errc::timed_out || word.error() == Errc::limit_reached);
      }
    }
    EXPECT_EQ(heard + subscription.missed(), std::uint64_t{publishers} * words);
  }

  Broadcast<Word> broadcast_;
  std::atomic<unsigned> left_ = publishers;
  std::atomic<unsigned> listening_ = 0;
};

TEST_P(OnThreads, AllSubscribersReceiveFromAllPublishers) {
  for (const SlowReaderPolicy fate : {SlowReaderPolicy::lag, SlowReaderPolicy::drop_oldest}) {
    for (const std::size_t capacity : {1U, 100U, 100'000U}) {
      SCOPED_TRACE(capacity);
      Square square({.capacity = capacity, .slow_reader_policy = fate});
      const auto body = [&](Scope& scope) { return square.on_core(scope); };
      run_with_outsiders(GetParam(), body, [&](unsigned number) { square.outside(number); });
    }
  }
}

/// Counts its instances on its core, without an atomic.
struct Resident {
  explicit Resident(long& of) : living(&of) { ++*living; }
  Resident(const Resident&) = delete;
  Resident& operator=(const Resident&) = delete;
  ~Resident() { --*living; }
  long* living;
};

/// Scenario in which residents of all cores go to core 0 or to a thread without a loop, or are
/// dropped.
class Visits {
 public:
  Task<> on_core(Scope& scope) {
    Loop& owner_loop = scope.loop();
    for (int i = 0; i < 2000; ++i) {
      auto resident = make_foreign<Resident>(owner_loop, living_[owner_loop.core()]);
      if (i % 3 == 0) static_cast<void>(outside_.try_send(std::move(resident)));
      if (i % 3 == 1) static_cast<void>(inside_.try_send(std::move(resident)));
      if (i % 64 == 0) co_await yield();
    }
    if (left_.fetch_sub(1) == 1) {
      inside_.close();
      outside_.close();
    }
    for (bool open = owner_loop.core() == 0; open;) {
      const auto visitor = co_await inside_.receive();  // GCC 12: not under a condition (STYLE.md)
      open = visitor.has_value();
    }
    // No loop may end earlier: a value that is dropped later is destroyed where it is dropped.
    while (!outsider_done_.load()) co_await yield();
  }
  void outside(unsigned number) {
    if (number != 0) return;
    while (!outside_.closed()) {
      while (outside_.try_receive()) {
      }
      std::this_thread::yield();
    }
    outsider_done_.store(true);
  }
  /// Called after the loops have ended: some residents are destroyed only with their loops.
  void check() {
    while (outside_.try_receive()) {
    }
    for (const long each : living_) EXPECT_EQ(each, 0);
  }

 private:
  std::array<long, cores> living_{};
  Mailbox<ForeignPtr<Resident>> inside_{{.capacity = 64}};
  Mailbox<ForeignPtr<Resident>> outside_{{.capacity = 1000}};
  std::atomic<unsigned> left_ = cores;
  std::atomic<bool> outsider_done_ = false;
};

TEST_P(OnThreads, ForeignPointersAreDestroyedOnTheirOwners) {
  Visits visits;
  const auto body = [&](Scope& scope) { return visits.on_core(scope); };
  run_with_outsiders(GetParam(), body, [&](unsigned number) { visits.outside(number); });
  visits.check();
}

}  // namespace
}  // namespace weir::messages_threads_test
