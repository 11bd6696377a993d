// Stores one value for each core.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <deque>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/task/combinators.hpp"

namespace weir {
namespace detail {

/// MappedRaw is the type that a function returns for a core's value, without Task<>; Mapped is
/// that type without Result<> too.
template <class Fn, class T>
using MappedRaw = typename Awaited<std::invoke_result_t<Fn&, T&>>::type;
template <class Fn, class T>
using Mapped = typename Unwrapped<MappedRaw<Fn, T>>::type;
/// FallibleAs is a Result<Value> if the function returns a Result, else a Value.
template <class Fn, class T, class Value>
using FallibleAs = std::conditional_t<is_result<MappedRaw<Fn, T>>, Result<Value>, Value>;

/// OnValue calls a function with one core's value. It owns a copy of the function and its
/// captures.
template <class Fn, class T>
class OnValue {
 public:
  OnValue(const Fn& fn, T& value) : fn_(fn), value_(&value) {}
  decltype(auto) operator()() { return std::invoke(fn_, *value_); }

 private:
  Fn fn_;
  T* value_;
};

}  // namespace detail

/// A PerCore holds one T for each core, created by the constructor. Handlers use it to count or
/// cache without sharing. Each T has its own cache lines, so cores do not slow each other down.
/// Threads: local() belongs to the loop that is its argument. A T belongs to its core; other
/// cores use on_core(), map() or reduce(), or access it while no loop runs.
/// Lifetime: outlives the run of the loops and every map() and reduce().
template <class T>
class PerCore {
 public:
  /// Creates `cores` values; `make(core)` returns the T of a core. See Runtime::core_count().
  template <class Make>
  PerCore(std::size_t cores, Make make) {
    for (std::size_t core = 0; core < cores; ++core) {
      slots_.emplace_back(make, static_cast<unsigned>(core));
    }
  }
  /// Creates a T() for each core.
  explicit PerCore(std::size_t cores) : PerCore(cores, [](unsigned) { return T(); }) {}
  PerCore(const PerCore&) = delete;
  PerCore& operator=(const PerCore&) = delete;

  /// Returns the T of `loop`, which is the caller's loop.
  T& local(const Loop& loop) noexcept { return on(loop.core()); }
  T& on(std::size_t core) noexcept {
    assert(core < slots_.size());
    return slots_[core].value;
  }
  std::size_t size() const noexcept { return slots_.size(); }

  /// `co_await values.map(fn)` calls a copy of `fn` with each core's T&, on all loops at the same
  /// time. `fn` returns a U, a Result<U> or a Task of either. The first failure cancels the calls
  /// that still run on other cores. The failure is passed on when all calls have finished: an
  /// error as the Result, an exception by throwing it here. An example is the std::out_of_range of
  /// on_core() if there are fewer cores than values.
  /// Returns: a std::vector<U> in the order of the cores, or a Result of one if `fn` returns
  /// Results (std::monostate replaces a void U).
  /// Cancel: passed on to the tasks on all cores; returns when they have finished.
  template <class Fn>
    requires std::invocable<Fn&, T&> && std::copy_constructible<Fn>
  auto map(Fn fn) -> Task<detail::FallibleAs<Fn, T, std::vector<detail::Mapped<Fn, T>>>> {
    std::vector<Task<detail::MappedRaw<Fn, T>>> calls;
    calls.reserve(size());
    for (Slot& slot : slots_) {
      const auto core = static_cast<unsigned>(calls.size());
      calls.push_back(on_core(core, detail::OnValue<Fn, T>(fn, slot.value)));
    }
    auto values = co_await all(std::move(calls));
    if constexpr (is_result<detail::MappedRaw<Fn, T>>) {
      co_return std::move(values);
    } else {
      co_return std::move(*values);
    }
  }

  /// `co_await values.reduce(fn, start, join)` calls map(fn), and then computes
  /// `join(… join(join(start, of core 0), of core 1) …)` on this core.
  /// Returns: a Value, or a Result<Value> if `fn` returns Results.
  /// Errors: those of map().
  /// Cancel: passed on to the tasks on all cores; returns when they have finished.
  template <class Fn, class Value, class Join>
    requires std::invocable<Join&, Value, detail::Mapped<Fn, T>>
  auto reduce(Fn fn, Value start, Join join) -> Task<detail::FallibleAs<Fn, T, Value>> {
    auto values = co_await map(std::move(fn));
    if constexpr (is_result<detail::MappedRaw<Fn, T>>) {
      if (!values) co_return fail(values.error());
      co_return join_all(std::move(start), std::move(*values), join);
    } else {
      co_return join_all(std::move(start), std::move(values), join);
    }
  }

 private:
  // Two cache lines of 64 bytes: processors fetch lines in pairs.
  struct alignas(128) Slot {
    template <class Make>
    Slot(Make& make, unsigned core) : value(make(core)) {}
    T value;
  };
  template <class Value, class Each, class Join>
  static Value join_all(Value value, std::vector<Each> values, Join& join) {
    for (auto&& each : values) value = std::invoke(join, std::move(value), std::move(each));
    return value;
  }

  std::deque<Slot> slots_;
};

}  // namespace weir
