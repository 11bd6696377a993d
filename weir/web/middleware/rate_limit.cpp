#include "weir/web/middleware/rate_limit.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "weir/base/text/detail/hash.hpp"
#include "weir/loop/detail/loop_group.hpp"
#include "weir/loop/loop.hpp"
#include "weir/web/clients/detail/client_network.hpp"
#include "weir/web/middleware/detail/rate_table.hpp"

namespace weir::http {
namespace {

constexpr std::size_t shard_count = 16;

/// Returns whole seconds, rounded up.
std::string seconds_text(Duration length) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(length).count();
  return std::to_string(std::max<std::int64_t>(seconds, 1));
}

/// What the headers of a response tell: the tightest of the limits around a request.
struct StatedLimit {
  RateDecision decision;
  RateLimit limit;
};

}  // namespace

/// The tables, which the first request makes: only then the number of cores is known.
/// Threads: any.
class RequestRateLimit::Buckets {
 public:
  explicit Buckets(RateLimitOptions of) : options(std::move(of)) {
    if (!RateLimiter::check(options.limit)) {
      throw std::invalid_argument("rate_limit: all values of the limit must be greater than zero");
    }
  }

  /// Returns the limit of one bucket: each core has its share with RateScope::per_core.
  const RateLimit& limit_of_bucket() const noexcept { return limit_of_bucket_; }

  /// Takes a token of the request's key; std::nullopt if the request has no limit.
  std::optional<RateDecision> take(const Request& request) {
    Loop* const loop = request.loop();
    assert(loop != nullptr && "a rate limit needs the clock of a server");
    std::call_once(made_, [&] { make(*loop); });
    const auto key = key_of(request);
    if (!key) return std::nullopt;
    if (options.scope == RateScope::per_core) {
      return tables_[loop->core() % tables_.size()]->take(*key, loop->now());
    }
    Shard& shard = shards_[key->low % shard_count];
    const std::lock_guard lock(shard.mutex);
    return shard.table->take(*key, loop->now());
  }

  const RateLimitOptions options;

 private:
  struct Shard {
    std::mutex mutex;
    std::optional<RateTable> table;
  };

  void make(Loop& loop) {
    seed_ = loop.platform().random();
    limit_of_bucket_ = options.limit;
    if (options.scope == RateScope::all_cores) {
      for (Shard& each : shards_) {
        each.table.emplace(options.limit, (options.keys_max + shard_count - 1) / shard_count);
      }
      return;
    }
    const std::size_t cores = std::max<std::size_t>(1, loop.group().loops().size());
    RateLimit& share = limit_of_bucket_;
    share.per = share.per * static_cast<std::int64_t>(cores);
    share.burst = std::max<std::uint64_t>(1, share.burst / cores);
    for (std::size_t core = 0; core < cores; ++core) {
      tables_.push_back(std::make_unique<RateTable>(share, options.keys_max));
    }
  }

  std::optional<Hash128> key_of(const Request& request) const {
    if (options.key) {
      const auto key = options.key(request);
      if (!key) return std::nullopt;
      return hash_bytes(*key, seed_);
    }
    if (!options.header.empty()) {
      // Another seed, so that no value is equal to an address.
      if (const auto value = request.header(options.header)) {
        return hash_bytes(*value, seed_ + 1);
      }
    }
    return detail::hash_client_network(request, {options.ipv4_bits, options.ipv6_bits}, seed_);
  }

  std::once_flag made_;
  std::uint64_t seed_ = 0;
  RateLimit limit_of_bucket_;
  std::array<Shard, shard_count> shards_;
  std::vector<std::unique_ptr<RateTable>> tables_;  // one for each core
};

RequestRateLimit::RequestRateLimit(RateLimitOptions options)
    : buckets_(std::make_unique<Buckets>(std::move(options))) {}
RequestRateLimit::RequestRateLimit(RequestRateLimit&& other) noexcept = default;
RequestRateLimit::~RequestRateLimit() = default;

std::size_t RequestRateLimit::memory_bound(std::size_t cores) const noexcept {
  constexpr std::size_t bucket = 16;
  const std::size_t round = RateTable::ways;
  const std::size_t keys = buckets_->options.keys_max;
  if (buckets_->options.scope == RateScope::per_core) return cores * (keys + round) * bucket;
  return (keys + shard_count * (round + 1)) * bucket;
}

std::optional<Response> RequestRateLimit::before(Request& request) const {
  const auto decision = buckets_->take(request);
  if (!decision) return std::nullopt;
  const auto* const outer = request.get<StatedLimit>();
  const bool is_tightest =
      !decision->allowed || outer == nullptr || decision->remaining < outer->decision.remaining;
  const bool states = buckets_->options.headers != RateHeaders::none;
  if (states && is_tightest) request.set(StatedLimit{*decision, buckets_->limit_of_bucket()});
  if (decision->allowed) return std::nullopt;
  Response response = problem(Status::too_many_requests);
  response.set_header("Retry-After", seconds_text(decision->retry_after));
  after(request, response);
  return response;
}

void RequestRateLimit::after(Request& request, Response& response) const {
  const RateLimitOptions& options = buckets_->options;
  if (options.headers == RateHeaders::none) return;
  const auto* const stated = request.get<StatedLimit>();
  if (stated == nullptr) return;  // the request ended before it was counted
  const std::string remaining = std::to_string(stated->decision.remaining);
  const std::string reset = seconds_text(stated->decision.until_full);
  if (options.headers == RateHeaders::separate) {
    response.set_header("RateLimit-Limit", std::to_string(stated->limit.burst));
    response.set_header("RateLimit-Remaining", remaining);
    response.set_header("RateLimit-Reset", reset);
    return;
  }
  response.set_header("RateLimit-Policy", "\"default\";q=" + std::to_string(stated->limit.tokens) +
                                              ";w=" + seconds_text(stated->limit.per));
  response.set_header("RateLimit", "\"default\";r=" + remaining + ";t=" + reset);
}

}  // namespace weir::http
