#include "weir/http/route_reader.hpp"

#include <cassert>
#include <mutex>
#include <utility>

#include "weir/http/router/detail/route_update.hpp"
#include "weir/http/route_publisher.hpp"
#include "weir/http/route_tenancy.hpp"

namespace weir::http {

/// Where notices find the reader, if it is still there: they may come later, when its loop ends.
struct RouteReader::Door {
  std::mutex mutex;
  RouteReader* reader;

  explicit Door(RouteReader& behind) noexcept : reader(&behind) {}
  RouteReader* knock() {
    const std::lock_guard lock(mutex);
    return reader;
  }
  void close() {
    const std::lock_guard lock(mutex);
    reader = nullptr;
  }
};

/// It comes home to the reader's loop as everything does that belongs there: in a runnable of its
/// own, at once when it was let go there, or, when that loop has ended, wherever it is; then nobody
/// is behind the door.
class RouteReader::Notice : public Homecoming::Guest {
 public:
  using What = void (RoutePublisher::*)(RouteReader&);
  Notice(Homecoming& home, std::shared_ptr<Door> door, What what)
      : Guest(home, &arrive), door_(std::move(door)), what_(what) {}

 private:
  static void arrive(Guest& self) noexcept {
    const std::unique_ptr<Notice> notice(static_cast<Notice*>(&self));
    RouteReader* const reader = notice->door_->knock();
    if (reader != nullptr) (reader->publisher_.*notice->what_)(*reader);
  }
  std::shared_ptr<Door> door_;
  What what_;
};

RouteReader::RouteReader(Loop& loop, RoutePublisher& publisher)
    : loop_(loop), publisher_(publisher), door_(std::make_shared<Door>(*this)) {
  table_ = &publisher_.attach(*this);
}

RouteReader::~RouteReader() {
  door_->close();
  publisher_.detach(*this);
}

Homecoming::Guest& RouteReader::make_notice(void (RoutePublisher::*what)(RouteReader&)) {
  return *new Notice(loop_.homecoming(), door_, what);
}

RouteUses& RouteReader::uses_of(const Route& route) {
  while (uses_.size() <= route.slot) uses_.emplace_back();
  return uses_[route.slot];
}

/// Those that the change waits for; nullptr when there are none.
RouteUses* RouteReader::uses_of(const RouteChange& change) noexcept {
  const Route* const route = change.retired();
  if (route == nullptr || route->slot >= uses_.size()) return nullptr;
  RouteUses& uses = uses_[route->slot];
  return uses.requests.empty() ? nullptr : &uses;
}

void RouteReader::left(RouteUses& uses) {
  if (!uses.requests.empty() || uses.retiring == nullptr) return;
  publisher_.last_request_ended(*std::exchange(uses.retiring, nullptr));
}

void RouteUse::stop_all(List<RouteUse>& requests) {
  for (RouteUse* each = requests.front(); each != nullptr; each = requests.next(*each)) {
    each->stop_(*each);
  }
}

RouteUse::RouteUse(RouteReader& reader, const Route* route, Stop stop)
    : reader_(reader), stop_(stop) {
  if (route == nullptr) return;
  if (route->tenancies != nullptr) {
    tenancy_ = &route->tenancies->on(reader.loop_);
    tenancy_->requests.push_back(*this);
  } else {
    uses_ = &reader.uses_of(*route);
    uses_->requests.push_back(*this);
  }
}

RouteUse::~RouteUse() {
  unlink();
  if (uses_ != nullptr) reader_.left(*uses_);
  if (tenancy_ != nullptr) tenancy_->left();
}

}  // namespace weir::http
