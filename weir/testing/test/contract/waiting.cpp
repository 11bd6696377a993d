// Contract of wait(): its duration, and the events that end it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

void wait_lasts_until_its_time(ContractFixture& fixture) {
  for (const Duration length : {Duration(1ms), Duration(20ms), Duration(300us)}) {
    const Instant until = after(fixture.platform().now(), length);
    fixture.backend().wait(until);
    EXPECT_GE(fixture.platform().now(), until);
    EXPECT_LT(fixture.platform().now(), after(until, 5s));
  }
}

void wait_returns_for_a_past_time(ContractFixture& fixture) {
  const Instant begun = fixture.platform().now();
  for (int i = 0; i < 100; ++i) {
    fixture.backend().wait(Instant::min());
    fixture.backend().wait(begun);
  }
  EXPECT_LT(fixture.platform().now() - begun, 5s);
}

// A wait of ten seconds ends when data arrives.
void bytes_end_the_wait(ContractFixture& fixture) {
  const auto [client, server] = fixture.connect();
  fixture.settle();
  ReceiveProbe& receiving = fixture.receive(server);
  const Instant begun = fixture.platform().now();
  fixture.write(client, "x");
  while (receiving.state() == loop::Operation::State::pending &&
         fixture.platform().now() - begun < Duration(10s)) {
    fixture.backend().wait(after(begun, 10s));
  }
  EXPECT_LT(fixture.platform().now() - begun, 5s);
  EXPECT_TRUE(fixture.finish(receiving).succeeded());
}

void a_wake_before_the_wait_ends_it(ContractFixture& fixture) {
  for (int round = 0; round < 10; ++round) {
    const Instant begun = fixture.platform().now();
    fixture.backend().wake();
    fixture.backend().wait(after(begun, 10s));
    EXPECT_LT(fixture.platform().now() - begun, 5s);
  }
}

// Many wake-ups before a wait end only a few waits.
void many_wakes_count_as_one(ContractFixture& fixture) {
  for (int i = 0; i < 1000; ++i) fixture.backend().wake();
  int early = 0;
  for (; early < 20; ++early) {
    const Instant until = after(fixture.platform().now(), 5ms);
    fixture.backend().wait(until);
    if (fixture.platform().now() >= until) break;
  }
  EXPECT_LT(early, 5);
}

// The wake-up comes before the wait, at its beginning, or during it. None may be lost.
void a_wake_from_another_thread_ends_the_wait(ContractFixture& fixture) {
  constexpr int rounds = 1000;
  std::atomic<int> asked{0};
  std::atomic<int> woken{0};
  loop::Backend& backend = fixture.backend();
  std::thread waker([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (asked.load(std::memory_order_acquire) < round) std::this_thread::yield();
      backend.wake();
      woken.store(round, std::memory_order_release);
    }
  });
  const Instant begun = fixture.platform().now();
  for (int round = 1; round <= rounds; ++round) {
    asked.store(round, std::memory_order_release);
    backend.wait(after(begun, 60s));
    while (woken.load(std::memory_order_acquire) < round) std::this_thread::yield();
  }
  EXPECT_LT(fixture.platform().now() - begun, 50s);
  waker.join();
}

void posts_from_another_thread_arrive(ContractFixture& fixture) {
  constexpr int rounds = 2000;
  std::atomic<int> ran{0};
  CallProbe call([&] {
    if (ran.fetch_add(1, std::memory_order_release) + 1 == rounds) fixture.loop().stop();
  });
  std::thread poster([&] {
    for (int round = 0; round < rounds; ++round) {
      while (ran.load(std::memory_order_acquire) < round) std::this_thread::yield();
      fixture.loop().post(call);
    }
  });
  const Instant begun = fixture.platform().now();
  while (!fixture.loop().stopping()) fixture.loop().turn(after(begun, 60s));
  EXPECT_LT(fixture.platform().now() - begun, 50s);
  poster.join();
}

}  // namespace

std::vector<ContractClause> contract_of_waiting() {
  return {
      {"wait_lasts_until_its_time", wait_lasts_until_its_time},
      {"wait_returns_for_a_past_time", wait_returns_for_a_past_time},
      {"bytes_end_the_wait", bytes_end_the_wait},
      {"a_wake_before_the_wait_ends_it", a_wake_before_the_wait_ends_it},
      {"many_wakes_count_as_one", many_wakes_count_as_one},
      {"a_wake_from_another_thread_ends_the_wait", a_wake_from_another_thread_ends_the_wait,
       ContractRequirement::real_time},
      {"posts_from_another_thread_arrive", posts_from_another_thread_arrive,
       ContractRequirement::real_time},
  };
}

}  // namespace weir
