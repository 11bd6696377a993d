// Optional<T> and All<T>: services that come and go while the one that asks for them runs.
#pragma once

#include <cassert>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "weir/app/parameter.hpp"
#include "weir/app/used_provider.hpp"

namespace weir {
class Loop;

namespace wiring {

/// Who is there at the moment, for one parameter of one service; it changes between two turns'
/// runnables, never inside one. Threads: those of the service's core.
struct Providers {
  std::vector<void*> objects;  ///< of a Remote: those of `used` that do not go
  std::function<void()> changed;
  std::vector<std::unique_ptr<UsedProvider>> used;
  Loop* home = nullptr;  ///< that core's: from before the service is made

  /// False on another core, which may look at nothing but `home`.
  bool is_at_home() const noexcept;
};

/// What Optional and All share: handles that may be copied within their service.
class ProvidersHandle {
 public:
  explicit ProvidersHandle(void* given) noexcept : of_(static_cast<Providers*>(given)) {}

  std::size_t size() const noexcept { return of().objects.size(); }
  bool empty() const noexcept { return of().objects.empty(); }

  /// Calls `changed` after each coming and, before that provider stops, each going, on this core.
  /// One per parameter: a second call replaces the first. It is dropped with the service.
  void on_change(std::function<void()> changed) const {
    assert(of_->is_at_home() && "used on another core than its service's");
    of_->changed = std::move(changed);
  }

 protected:
  ~ProvidersHandle() = default;
  const Providers& of() const noexcept {
    assert(of_->is_at_home() && "used on another core than its service's");
    return *of_;
  }
  const Providers& of_any_core() const noexcept { return *of_; }

 private:
  Providers* of_;
};

}  // namespace wiring

/// A parameter that is there or not, and may come and go: `if (cache) cache->put(...)`. Of several
/// it is the first that came. T is const for a shared service (and always in one).
/// Threads: the service's core (asserted). So a shared service uses it in its start(), its stop(),
/// its scope's tasks and on_change(), but not in what others call from their cores: those take it
/// themselves. Lifetime: of the handle, that of the service; of what it points to, until the next
/// co_await: a provider stops only after on_change() has told of it.
template <class T, class Filter = void>
class Optional : public wiring::ProvidersHandle {
 public:
  static constexpr wiring::Parameter needs{&wiring::type<std::remove_const_t<T>>,
                                           wiring::filter_of<Filter>(), wiring::Need::some,
                                           !std::is_const_v<T>};
  using ProvidersHandle::ProvidersHandle;

  explicit operator bool() const noexcept { return !empty(); }
  T* get() const noexcept { return empty() ? nullptr : static_cast<T*>(of().objects.front()); }
  T& operator*() const noexcept {
    assert(!empty());
    return *get();
  }
  T* operator->() const noexcept { return &**this; }
};

/// A parameter for every provider there is, in the order of their coming: `for (T& each : all)`.
/// Threads and lifetime: as for Optional; not to be iterated over across a co_await.
template <class T, class Filter = void>
class All : public wiring::ProvidersHandle {
 public:
  static constexpr wiring::Parameter needs = Optional<T, Filter>::needs;
  using ProvidersHandle::ProvidersHandle;

  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    Iterator() noexcept = default;
    explicit Iterator(std::vector<void*>::const_iterator at) noexcept : at_(at) {}
    T& operator*() const noexcept { return *static_cast<T*>(*at_); }
    T* operator->() const noexcept { return static_cast<T*>(*at_); }
    Iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    Iterator operator++(int) noexcept { return Iterator(at_++); }
    bool operator==(const Iterator&) const noexcept = default;

   private:
    std::vector<void*>::const_iterator at_;
  };
  Iterator begin() const noexcept { return Iterator(of().objects.begin()); }
  Iterator end() const noexcept { return Iterator(of().objects.end()); }
};

}  // namespace weir
