// What the connections of one server on one core share: limits, the date, counters, the drain.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/detail/counter.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/http/detail/h1/host_line_cache.hpp"
#include "weir/http/h1/usual_head.hpp"
#include "weir/http/last_answers.hpp"
#include "weir/http/limits.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/http/route_reader.hpp"
#include "weir/http/router/router.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

struct ServerCounters {
  Counter connections_accepted;
  Counter connections_refused;  ///< beyond connections_max
  Counter connections_open;
  Counter silent_connections;  ///< that were closed because nothing ever came
  Counter slow_readers;        ///< connections closed because of Limits::write_rate
  Counter requests;            ///< heads that were parsed
  Counter responses;           ///< that were handed over to be sent
  Counter handler_failures;
  std::array<Counter, refusal_count> refusals;  ///< by reason
};

/// A connection as its server sees it: something that can be asked to finish.
class DrainingConnection : public ListNode {
 public:
  virtual void drain() = 0;

 protected:
  ~DrainingConnection() = default;
};

/// Threads: one loop's, but for reading the counters. Lifetime: outlives its connections.
class ServerCore final : DrainWatcher, FigureSource {
 public:
  ServerCore(Loop& loop, const Router& router, const Limits& limits);
  ~ServerCore();

  Loop& loop() const noexcept { return loop_; }
  const Router& router() const noexcept { return router_; }
  /// The router's routes as this core serves them now.
  RouteReader& routes() noexcept { return routes_; }
  const Limits& limits() const noexcept { return limits_; }
  /// See request_id_prefix().
  const std::string& id_prefix() const noexcept { return id_prefix_; }
  bool draining() const noexcept { return draining_; }
  /// Its connections end with what they have; it happens by itself when the loop drains.
  void drain();

  /// For a Date field, at most a second old.
  const Date& date() noexcept {
    if (loop_.now() >= date_until_) refresh_date();
    return date_;
  }
  /// For a usual answer with this media type, of at most UsualHead::type_size_max bytes.
  const UsualHead& usual_head(std::string_view content_type) noexcept {
    const Date& now = date();
    if (!usual_head_.is_for(content_type)) usual_head_.begin(now, content_type);
    return usual_head_;
  }

  KnownHost& known_host() noexcept { return known_host_; }
  LastAnswers& last_answers() noexcept { return last_answers_; }

  /// One of the connections that there may be at once, on all cores of the runtime together.
  class Place {
   public:
    Place(Place&& other) noexcept : server_(std::exchange(other.server_, nullptr)) {}
    ~Place() {
      if (server_ != nullptr) server_->places_taken().fetch_sub(1, std::memory_order_relaxed);
    }
    ServerCore& server() const noexcept { return *server_; }

   private:
    friend ServerCore;
    explicit Place(ServerCore& server) noexcept : server_(&server) {}
    ServerCore* server_;
  };
  /// A place for one more connection; nullopt when there are as many as may be.
  std::optional<Place> admit() noexcept;

  /// Of connections that have a place.
  void add(DrainingConnection& connection) noexcept;
  void remove(DrainingConnection& connection) noexcept;

  /// Half of the descriptors that are reserved for other things than connections.
  static constexpr std::size_t turning_away_max = 32;
  /// A connection beyond the limit, while it is answered that it came too late.
  class TurningAway {
   public:
    explicit TurningAway(ServerCore& server) noexcept : server_(server) {
      server_.counters_.connections_refused.add();
      ++server_.turning_away_;
    }
    ~TurningAway() { --server_.turning_away_; }
    TurningAway(const TurningAway&) = delete;
    TurningAway& operator=(const TurningAway&) = delete;
    /// So many wait for their answer to arrive that this one is closed behind its own at once.
    bool too_many() const noexcept { return server_.turning_away_ > turning_away_max; }

   private:
    ServerCore& server_;
  };

  ServerCounters& counters() noexcept { return counters_; }
  /// The counters in words, refusals by reason: "3 connections, 12 requests, 1 bad_host".
  std::string summary() const;
  void refused(Refusal refusal) noexcept {
    counters_.refusals[static_cast<std::size_t>(refusal)].add();
  }

 private:
  std::atomic<std::size_t>& places_taken() const noexcept { return loop_.group().connections; }
  void tell(FigureSum& sum) const override;
  void refresh_date() noexcept;
  static void asked_to_drain(DrainWatcher& self);

  Loop& loop_;
  const Router& router_;
  RouteReader routes_;
  Limits limits_;
  std::string id_prefix_;
  std::size_t connections_max_;
  std::size_t turning_away_ = 0;
  bool draining_;
  KnownHost known_host_;
  LastAnswers last_answers_;
  Date date_;
  Instant date_until_;
  UsualHead usual_head_;
  List<DrainingConnection> connections_;
  ServerCounters counters_;
};

}  // namespace weir::http
