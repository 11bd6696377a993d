// Tests of the sessions of one process.
#include "weir/web/cookies/memory_session_store.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::http::memory_session_store_test {
namespace {

using namespace std::chrono_literals;

class MemorySessionStoreTest : public LoopTest {
 protected:
  Result<> save(std::string id, std::string data, SessionSave how = SessionSave::create) {
    return run(store_.save(std::move(id), std::move(data), 60s, how));
  }
  std::optional<std::string> load(std::string id) {
    return run(store_.load(std::move(id), 60s)).value();
  }
  void sleep_for(Duration length) {
    const auto wait = [](Duration of) -> Task<> { std::ignore = co_await sleep(of); };
    run(wait(length));
  }

  static constexpr std::size_t one = MemorySessionStore::entry_bytes + 1;  // without its data
  MemorySessionStore store_{{.sessions_max = 3, .bytes_max = 3 * one + 100}};
};

TEST_F(MemorySessionStoreTest, KeepsDataUntilItIsRemoved) {
  EXPECT_EQ(load("a"), std::nullopt);
  EXPECT_TRUE(save("a", "data"));
  EXPECT_EQ(load("a"), "data");
  EXPECT_EQ(store_.size(), 1U);
  EXPECT_EQ(store_.bytes(), one + 4);
  EXPECT_TRUE(run(store_.remove("a")));
  EXPECT_TRUE(run(store_.remove("a")));
  EXPECT_EQ(load("a"), std::nullopt);
  EXPECT_EQ(store_.bytes(), 0U);
}

TEST_F(MemorySessionStoreTest, ReplacesOnlyWhatExists) {
  EXPECT_EQ(save("a", "1", SessionSave::replace).error(), Errc::not_found);
  EXPECT_TRUE(save("a", "1"));
  EXPECT_TRUE(save("a", "22", SessionSave::replace));
  EXPECT_EQ(load("a"), "22");
  EXPECT_EQ(store_.size(), 1U);
  EXPECT_EQ(store_.bytes(), one + 2);
  EXPECT_TRUE(run(store_.remove("a")));
  EXPECT_EQ(save("a", "1", SessionSave::replace).error(), Errc::not_found);
}

TEST_F(MemorySessionStoreTest, LoadingExtendsALife) {
  EXPECT_TRUE(save("a", "1"));
  EXPECT_TRUE(save("b", "2"));
  sleep_for(40s);
  EXPECT_EQ(load("a"), "1");
  sleep_for(40s);
  EXPECT_EQ(load("a"), "1");
  EXPECT_EQ(load("b"), std::nullopt);
  EXPECT_EQ(save("b", "2", SessionSave::replace).error(), Errc::not_found);
  sleep_for(60s);
  EXPECT_EQ(load("a"), std::nullopt);
  EXPECT_EQ(store_.evicted(), 0U);
}

TEST_F(MemorySessionStoreTest, DropsTheLeastRecentlyUsedAtItsLimits) {
  for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(save(id, ""));
  EXPECT_EQ(load("a"), "");
  EXPECT_TRUE(save("d", ""));
  EXPECT_EQ(load("b"), std::nullopt);
  EXPECT_EQ(load("a"), "");
  EXPECT_EQ(store_.evicted(), 1U);
  EXPECT_TRUE(save("e", std::string(100, 'x')));
  EXPECT_TRUE(save("f", std::string(100, 'x')));
  EXPECT_LE(store_.bytes(), 3 * one + 100);
  EXPECT_EQ(load("a"), std::nullopt);
  EXPECT_EQ(load("d"), std::nullopt);
  EXPECT_EQ(load("e"), std::string(100, 'x'));
  EXPECT_EQ(load("f"), std::string(100, 'x'));
  EXPECT_EQ(store_.evicted(), 4U);
}

TEST_F(MemorySessionStoreTest, DropsWhatHasEndedFirst) {
  for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(save(id, ""));
  sleep_for(60s);
  EXPECT_TRUE(save("d", ""));
  EXPECT_EQ(store_.size(), 1U);
  EXPECT_EQ(store_.evicted(), 0U);
}

TEST_F(MemorySessionStoreTest, RefusesASessionThatNeverFits) {
  EXPECT_TRUE(save("a", "1"));
  EXPECT_EQ(save("b", std::string(2 * one + 101, 'x')).error(), Errc::limit_reached);
  EXPECT_EQ(load("a"), "1");
}

TEST_F(MemorySessionStoreTest, SharesItsLimitsAmongItsParts) {
  MemorySessionStore large({.sessions_max = 16 * 1024, .bytes_max = 64 * 1024 * 1024});
  for (int each = 0; each < 40'000; ++each) {
    EXPECT_TRUE(run(large.save(std::to_string(each), "", 60s, SessionSave::create)));
  }
  EXPECT_EQ(large.size(), 16U * 1024);
  EXPECT_EQ(large.evicted(), 40'000U - 16 * 1024);
}

}  // namespace
}  // namespace weir::http::memory_session_store_test
