// Tests of middleware whose state all cores share, on real threads.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "weir/http/test/http_request.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/web/middleware/detail/idempotency_store.hpp"
#include "weir/web/middleware/rate_limit.hpp"

namespace weir::http::middleware_threads_test {
namespace {

constexpr int rounds = 1000;

RuntimeOptions four_cores() {
  RuntimeOptions options;
  options.cores = 4;
  options.pin = false;
  options.handle_signals = false;
  options.announce = false;
  return options;
}

Task<Result<>> ask_often(Scope& scope, const RequestRateLimit& limit, std::atomic<int>& allowed) {
  for (int round = 0; round < rounds; ++round) {
    TextRequest request("GET /", {}, {}, &scope.loop());
    if (!limit.before(request.request())) allowed.fetch_add(1);
  }
  co_return {};
}

TEST(MiddlewareThreads, ARateLimitIsExactOverAllCores) {
  for (const RateScope scope : {RateScope::all_cores, RateScope::per_core}) {
    const auto limit = rate_limit(
        {.limit = {.tokens = 1, .per = std::chrono::hours(24), .burst = rounds}, .scope = scope});
    std::atomic<int> allowed{0};
    OsPlatform platform;
    Runtime runtime(platform, four_cores());
    EXPECT_EQ(runtime.run_on_each_core(ask_often, std::cref(limit), std::ref(allowed)), 0);
    EXPECT_EQ(allowed.load(), rounds);
  }
}

Task<Result<>> claim_keys(Scope& scope, IdempotencyStore& store, std::atomic<int>& claimed) {
  for (int round = 0; round < rounds; ++round) {
    const Hash128 key = hash_bytes(std::to_string(round), store.seed(scope.loop()));
    const Hash128 owner = hash_bytes(std::to_string(round % 3), store.seed(scope.loop()));
    const auto claim = store.claim({owner, key, key}, scope.loop().now());
    if (claim.state != IdempotencyStore::State::claimed) continue;
    claimed.fetch_add(1);
    const Response response = text(std::to_string(round));
    store.finish(key, std::make_shared<const StoredResponse>(response), scope.loop().now());
  }
  co_return {};
}

TEST(MiddlewareThreads, OneCoreClaimsAKey) {
  IdempotencyStore store({.lifetime = 1h, .entries_max = 2 * rounds, .bytes_max = 10'000'000});
  std::atomic<int> claimed{0};
  OsPlatform platform;
  Runtime runtime(platform, four_cores());
  EXPECT_EQ(runtime.run_on_each_core(claim_keys, std::ref(store), std::ref(claimed)), 0);
  EXPECT_EQ(claimed.load(), rounds);
  EXPECT_EQ(store.entries(), static_cast<std::size_t>(rounds));
}

}  // namespace
}  // namespace weir::http::middleware_threads_test
