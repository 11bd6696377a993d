// Contract: how long wait() waits, and what wakes it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {
namespace {

void it_waits_until_the_moment(ContractBench& bench) {
  for (const Duration length : {Duration(1ms), Duration(20ms), Duration(300us)}) {
    const Instant until = after(bench.host().now(), length);
    bench.backend().wait(until);
    EXPECT_GE(bench.host().now(), until);
    EXPECT_LT(bench.host().now(), after(until, 5s));
  }
}

void it_does_not_wait_for_the_past(ContractBench& bench) {
  const Instant begun = bench.host().now();
  for (int i = 0; i < 100; ++i) {
    bench.backend().wait(Instant::min());
    bench.backend().wait(begun);
  }
  EXPECT_LT(bench.host().now() - begun, 5s);
}

// A wait of ten seconds that ends when the bytes are there.
void bytes_end_the_wait(ContractBench& bench) {
  const auto [client, server] = bench.connect();
  bench.settle();
  ReceiveProbe& receiving = bench.receive(server);
  const Instant begun = bench.host().now();
  bench.write(client, "x");
  while (receiving.state() == Operation::State::pending &&
         bench.host().now() - begun < Duration(10s)) {
    bench.backend().wait(after(begun, 10s));
  }
  EXPECT_LT(bench.host().now() - begun, 5s);
  EXPECT_TRUE(bench.finish(receiving).succeeded());
}

void a_wake_before_the_wait_ends_it(ContractBench& bench) {
  for (int round = 0; round < 10; ++round) {
    const Instant begun = bench.host().now();
    bench.backend().wake();
    bench.backend().wait(after(begun, 10s));
    EXPECT_LT(bench.host().now() - begun, 5s);
  }
}

// Many wake-ups are no more than one: they are not answered one by one.
void wakes_do_not_pile_up(ContractBench& bench) {
  for (int i = 0; i < 1000; ++i) bench.backend().wake();
  int early = 0;
  for (; early < 20; ++early) {
    const Instant until = after(bench.host().now(), 5ms);
    bench.backend().wait(until);
    if (bench.host().now() >= until) break;
  }
  EXPECT_LT(early, 5);
}

// Before the wait, at its beginning or while it sleeps: none of the wake-ups may be lost.
void another_thread_wakes_it(ContractBench& bench) {
  constexpr int rounds = 1000;
  std::atomic<int> asked{0};
  std::atomic<int> woken{0};
  Backend& backend = bench.backend();
  std::thread waker([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (asked.load(std::memory_order_acquire) < round) std::this_thread::yield();
      backend.wake();
      woken.store(round, std::memory_order_release);
    }
  });
  const Instant begun = bench.host().now();
  for (int round = 1; round <= rounds; ++round) {
    asked.store(round, std::memory_order_release);
    backend.wait(after(begun, 60s));
    while (woken.load(std::memory_order_acquire) < round) std::this_thread::yield();
  }
  EXPECT_LT(bench.host().now() - begun, 50s);
  waker.join();
}

void posts_from_another_thread_arrive(ContractBench& bench) {
  constexpr int rounds = 2000;
  std::atomic<int> ran{0};
  CallProbe call([&] {
    if (ran.fetch_add(1, std::memory_order_release) + 1 == rounds) bench.loop().stop();
  });
  std::thread poster([&] {
    for (int round = 0; round < rounds; ++round) {
      while (ran.load(std::memory_order_acquire) < round) std::this_thread::yield();
      bench.loop().post(call);
    }
  });
  const Instant begun = bench.host().now();
  while (!bench.loop().stopping()) bench.loop().turn(after(begun, 60s));
  EXPECT_LT(bench.host().now() - begun, 50s);
  poster.join();
}

}  // namespace

std::vector<ContractClause> contract_of_waiting() {
  return {
      {"it_waits_until_the_moment", it_waits_until_the_moment},
      {"it_does_not_wait_for_the_past", it_does_not_wait_for_the_past},
      {"bytes_end_the_wait", bytes_end_the_wait},
      {"a_wake_before_the_wait_ends_it", a_wake_before_the_wait_ends_it},
      {"wakes_do_not_pile_up", wakes_do_not_pile_up},
      {"another_thread_wakes_it", another_thread_wakes_it, ContractNeed::real_time},
      {"posts_from_another_thread_arrive", posts_from_another_thread_arrive,
       ContractNeed::real_time},
  };
}

}  // namespace weir
