// TaskWalk reads the tasks that wait on one loop, for reports, in steps of bounded length.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/task/cancel.hpp"

namespace weir {

class Loop;
class TraceContext;

/// The tasks that a TaskWalk has found. It refers to no task: its addresses are only names.
struct TaskSnapshot {
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// A TraceContext; see there.
  struct Trace {
    std::string kind;
    std::string id;
    std::string name;
  };
  /// One suspended task, or several equal ones that await something themselves.
  struct Entry {
    const void* function = nullptr;  ///< resumes the coroutine
    std::string_view awaits = {};    ///< what it waits for; empty if it waits for its children
    std::string_view run_by = {};    ///< Continuation::Kind::name of the task
    Duration age{};                  ///< since the frame of the oldest of them was made
    bool has_age = false;
    bool collected = false;  ///< stands for tasks whose parents are left out, because of the limits
    std::uint32_t parent = none;  ///< index of the task that waits for it, which comes before it
    std::uint32_t trace = none;   ///< index into traces
    std::uint64_t count = 1;
  };
  std::vector<Entry> entries;
  std::vector<Trace> traces;
  std::uint64_t waits = 0;     ///< waits that the walk has seen
  std::uint64_t left_out = 0;  ///< waits that have no entry, because there are too many kinds
  bool complete = false;       ///< false if the walk ended early
};

/// A TaskWalk goes through the cancellation sources of a loop, from Loop::roots() down, and follows
/// the continuations of each wait up to its root. Other work runs between two steps, and may end or
/// begin tasks. A node of the walk marks its place in each source meanwhile. A source that ends
/// takes its node with it, and the walk continues in the source above.
///
/// Tasks that wait without a source (shielded ones) and tasks that are ready to run are not found,
/// unless they are above a wait that is. A task that runs during the walk and waits again may be
/// counted twice. Equal waits below the same task and trace are one entry. Waits of one kind
/// beyond a quarter of the limit of entries are collected in one entry without a parent.
/// Errors: the constructor and step() throw std::bad_alloc.
/// Threads: the loop's.
class TaskWalk {
 public:
  /// Visits per step. A visit takes less than 300 ns, if its memory is not in the cache.
  static constexpr unsigned visits_per_step = 256;
  /// Sources below each other. Deeper ones are left out.
  static constexpr std::size_t depth_max = 48;
  /// Tasks that wait for each other below one source. The walk leaves out higher ones.
  static constexpr std::size_t chain_max = 64;
  /// Steps, after which a walk ends early.
  static constexpr unsigned steps_max = 8192;

  TaskWalk(Loop& loop, std::size_t entries_max);
  TaskWalk(const TaskWalk&) = delete;
  TaskWalk& operator=(const TaskWalk&) = delete;

  /// Does one step.
  /// Returns: true if the walk has ended.
  bool step();
  TaskSnapshot& snapshot() noexcept { return snapshot_; }

 private:
  /// The place of the walk in the list of a source, or in the list of roots.
  struct Level {
    CancelNode cursor{CancelSource::cursor_kind};
    CancelSource* source = nullptr;  // nullptr: the roots
  };
  /// A kind of wait, to limit its entries.
  struct WaitKind {
    const void* function = nullptr;
    const char* awaits = nullptr;
    std::uint32_t entries = 0;
    std::uint32_t collected = TaskSnapshot::none;  // index of the entry of the rest
  };
  /// The facts by which the walk finds an entry again.
  struct Key {
    const void* object =
        nullptr;  // of a wait: its text; of a task that waits for others: its frame
    const void* function = nullptr;
    std::uint32_t time = 0;  // when the frame was made
    std::uint32_t parent = TaskSnapshot::none;
    std::uint32_t trace = TaskSnapshot::none;
    bool operator==(const Key&) const = default;
  };

  CancelNode* next(Level& level) noexcept;
  unsigned visit(CancelNode& node);
  unsigned add_wait(std::coroutine_handle<> coroutine, std::string_view awaits);
  std::uint32_t add_parents(std::coroutine_handle<> coroutine, std::string_view& run_by,
                            unsigned& cost);
  std::uint32_t trace_of(std::coroutine_handle<> coroutine, unsigned& cost);
  WaitKind* kind_of(const void* function, std::string_view awaits) noexcept;
  void collect(WaitKind* kind, const void* function, std::string_view awaits);
  std::uint32_t& find(const Key& key) noexcept;
  bool is_full() const noexcept { return found_ >= entries_max_; }
  std::uint32_t add(std::uint32_t& place, const Key& key, TaskSnapshot::Entry entry);

  Loop& loop_;
  const std::size_t entries_max_;
  unsigned steps_ = 0;
  std::size_t depth_ = 1;
  std::array<Level, depth_max> levels_;
  TaskSnapshot snapshot_;
  std::size_t found_ = 0;              // entries that are not collected
  std::vector<Key> keys_;              // of the entries; unused for collected ones
  std::vector<std::uint32_t> places_;  // hash table of indices into keys_
  std::array<WaitKind, 256> kinds_;    // hash table
  struct SeenTrace {
    std::uint32_t index;
    unsigned step;  // in which its texts were made
  };
  std::unordered_map<const TraceContext*, SeenTrace> traces_;
};

}  // namespace weir
