// The legal transitions of an object with states.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace weir::detail {

/// A StateTable says which state may follow which. An object has one setter of its state, which
/// calls `change()` of a constant table. The states are the numbers from 0 to Count - 1.
/// Threads: any.
template <class State, std::size_t Count>
class StateTable {
 public:
  struct Row {
    State from;
    std::initializer_list<State> to;
  };

  /// A state without a row has no successor. A table with two rows for one state does not compile.
  consteval StateTable(std::initializer_list<Row> rows) {
    static_assert(Count <= 32);
    for (const Row& row : rows) {
      std::uint32_t& next = next_[index(row.from)];
      if (next != 0) throw "two rows for one state";
      for (const State to : row.to) next |= bit(to);
    }
  }
  constexpr bool allows(State from, State to) const noexcept {
    return (next_[index(from)] & bit(to)) != 0;
  }

  /// Asserts that `next` may follow `state`, and puts it there.
  constexpr void change(State& state, State next) const noexcept {
    assert(allows(state, next));
    state = next;
  }

 private:
  static constexpr std::size_t index(State state) noexcept {
    return static_cast<std::size_t>(state);
  }
  static constexpr std::uint32_t bit(State state) noexcept {
    return std::uint32_t{1} << index(state);
  }

  std::array<std::uint32_t, Count> next_{};
};

}  // namespace weir::detail
