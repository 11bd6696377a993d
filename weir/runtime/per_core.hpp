// One value for each core.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <deque>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/runtime/on_core.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/combinators.hpp"

namespace weir {
namespace detail {

/// What a function gives for a core's value, without Task<> and Result<> around it.
template <class Fn, class T>
using MappedRaw = typename Awaited<std::invoke_result_t<Fn&, T&>>::type;
template <class Fn, class T>
using Mapped = typename Unwrapped<MappedRaw<Fn, T>>::type;
/// A Result<T> where that function gives a Result, else a T.
template <class Fn, class T, class Value>
using FallibleAs = std::conditional_t<is_result<MappedRaw<Fn, T>>, Result<Value>, Value>;

/// The call of a function with one core's value. It lives with the call, and so does what the
/// function has captured.
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

/// A T for each core, made when this is: what handlers count or cache without sharing. Each is on
/// cache lines of its own, so that cores do not slow each other down.
/// Threads: local() on the loop that it is given; a T belongs to its core, so reach for another's
/// by on_core(), map() or reduce(), or while no loop runs. Lifetime: outlives the run of the loops,
/// and every map() and reduce().
template <class T>
class PerCore {
 public:
  /// `make(core)` gives the T of a core, for `cores` of them; Runtime::core_count() tells how many.
  template <class Make>
  PerCore(std::size_t cores, Make make) {
    for (std::size_t core = 0; core < cores; ++core) {
      slots_.emplace_back(make, static_cast<unsigned>(core));
    }
  }
  /// Each a T().
  explicit PerCore(std::size_t cores) : PerCore(cores, [](unsigned) { return T(); }) {}
  PerCore(const PerCore&) = delete;
  PerCore& operator=(const PerCore&) = delete;

  /// The T of the loop that the caller is on.
  T& local(const Loop& loop) noexcept { return on(loop.core()); }
  T& on(std::size_t core) noexcept {
    assert(core < slots_.size());
    return slots_[core].value;
  }
  std::size_t size() const noexcept { return slots_.size(); }

  /// `co_await values.map(fn)`: calls a copy of `fn` with each core's T& on that core's loop, on
  /// all at once; gives the values, back here, in the order of the cores. `fn` returns a U, a
  /// Result<U> or a Task of one of them; the whole is a std::vector<U>, or a Result of one when
  /// `fn` gives Results (std::monostate for a U that is void). The first failure cancels what still
  /// runs elsewhere and is passed on when all have finished: an error as the Result, an exception
  /// thrown here; so is the std::out_of_range of on_core() where there are fewer cores than values.
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

  /// `co_await values.reduce(fn, start, join)`: the same, and then here
  /// `join(… join(join(start, of core 0), of core 1) …)`: a Value, or a Result of one when `fn`
  /// gives Results.
  /// Cancel: as map().
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
  // Twice a cache line of 64 bytes: processors fetch them in pairs.
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
