#include "weir/task/detail/task_walk.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>
#include <utility>

#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/detail/promise.hpp"

namespace weir {
namespace {

constexpr std::uint32_t none = TaskSnapshot::none;
constexpr std::size_t traces_max = 4096;

/// Returns the function that resumes a suspended coroutine; see CurrentActivity.
const void* function_of(std::coroutine_handle<> coroutine) noexcept {
  return *static_cast<const void* const*>(coroutine.address());
}

std::size_t mix(std::size_t hash, const void* value) noexcept {
  hash ^= reinterpret_cast<std::uintptr_t>(value);
  hash *= 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 29);
}

}  // namespace

TaskWalk::TaskWalk(Loop& loop, std::size_t entries_max)
    : loop_(loop), entries_max_(std::max<std::size_t>(entries_max, 16)) {
  // Allocated here, so that no step has to move them.
  snapshot_.entries.reserve(entries_max_ + kinds_.size());
  keys_.reserve(entries_max_ + kinds_.size());
  places_.resize(std::bit_ceil(entries_max_ * 2), none);
  traces_.reserve(std::min(entries_max_, traces_max));
  snapshot_.traces.reserve(std::min(entries_max_, traces_max));
  loop.roots().push_front(levels_[0].cursor);
}

bool TaskWalk::step() {
  ++steps_;
  for (unsigned cost = 0; cost < visits_per_step && depth_ > 0;) {
    Level& level = levels_[depth_ - 1];
    CancelNode* const node = level.cursor.linked() ? next(level) : nullptr;
    if (node != nullptr) {
      cost += visit(*node);
    } else {
      level.cursor.leave();
      --depth_;
    }
  }
  if (depth_ == 0) {
    snapshot_.complete = true;
    return true;
  }
  return steps_ >= steps_max;
}

/// Moves the cursor behind the next node, which it returns; nullptr at the end.
CancelNode* TaskWalk::next(Level& level) noexcept {
  const auto move = [&level](auto& list) {
    auto* const node = list.next(level.cursor);
    if (node == nullptr) return static_cast<CancelNode*>(nullptr);
    level.cursor.leave();
    list.insert_after(*node, level.cursor);
    return static_cast<CancelNode*>(node);
  };
  return level.source != nullptr ? move(level.source->nodes_) : move(loop_.roots());
}

/// Returns the cost of the visit.
unsigned TaskWalk::visit(CancelNode& node) {
  const CancelNode::Kind& kind = node.kind();
  if (&kind == &CancelSource::source_kind) {
    if (depth_ < depth_max) {
      Level& level = levels_[depth_++];
      level.source = static_cast<CancelSource*>(&node);
      level.source->nodes_.push_front(level.cursor);
    }
    return 1;
  }
  if (kind.coroutine == nullptr) return 1;
  const std::coroutine_handle<> coroutine = kind.coroutine(node);
  return coroutine ? 1 + add_wait(coroutine, kind.awaits) : 1;
}

unsigned TaskWalk::add_wait(std::coroutine_handle<> coroutine, std::string_view awaits) {
  ++snapshot_.waits;
  unsigned cost = 1;
  const void* const function = function_of(coroutine);
  WaitKind* const kind = kind_of(function, awaits);
  if (is_full() || (kind != nullptr && kind->entries >= entries_max_ / 4)) {
    collect(kind, function, awaits);
    return cost;
  }
  TaskSnapshot::Entry entry{.function = function, .awaits = awaits};
  if (const auto info = loop_.blocks().frame_info(coroutine.address())) {
    entry.age = info->age;
    entry.has_age = true;
  }
  entry.parent = add_parents(coroutine, entry.run_by, cost);
  entry.trace = trace_of(coroutine, cost);
  const Key key{awaits.data(), function, 0, entry.parent, entry.trace};
  std::uint32_t& place = find(key);
  if (place != none) {
    TaskSnapshot::Entry& known = snapshot_.entries[place];
    ++known.count;
    known.age = std::max(known.age, entry.age);
    known.has_age |= entry.has_age;
  } else if (is_full()) {  // its parents took the last places
    collect(kind, function, awaits);
  } else {
    add(place, key, entry);
    if (kind != nullptr) ++kind->entries;
  }
  return cost;
}

/// Adds the tasks that wait for the end of `coroutine`, one for the next.
/// Returns: the index of the first of them.
std::uint32_t TaskWalk::add_parents(std::coroutine_handle<> coroutine, std::string_view& run_by,
                                    unsigned& cost) {
  struct Link {
    std::coroutine_handle<> coroutine;
    std::string_view run_by = {};
    std::uint32_t time = 0;
    Duration age{};
    bool has_age = false;
  };
  std::array<Link, chain_max> chain;
  std::size_t size = 0;
  std::uint32_t top = none;
  std::string_view* label = &run_by;
  const auto key_of = [](const Link& link) {
    return Key{link.coroutine.address(), function_of(link.coroutine), link.time};
  };
  for (std::coroutine_handle<> child = coroutine; size < chain_max;) {
    ++cost;
    const Continuation* const continuation = ContextHolder::continuation_of(child);
    if (continuation == nullptr) break;
    const Continuation::Kind& kind = continuation->kind();
    *label = kind.name;
    if (kind.coroutine == nullptr) break;
    child = kind.coroutine(*continuation);
    if (!child) break;
    Link& link = chain[size];
    link = {.coroutine = child};
    if (const auto info = loop_.blocks().frame_info(child.address())) {
      link.time = info->time;
      link.age = info->age;
      link.has_age = true;
    }
    top = find(key_of(link));
    if (top != none) break;
    label = &link.run_by;
    ++size;
  }
  while (size > 0 && !is_full()) {
    const Link& link = chain[--size];
    const Key key = key_of(link);
    std::uint32_t& place = find(key);
    top = add(place, key,
              {.function = key.function,
               .run_by = link.run_by,
               .age = link.age,
               .has_age = link.has_age,
               .parent = top,
               .trace = trace_of(link.coroutine, cost)});
  }
  return top;
}

/// Returns the index of the trace of a coroutine. A trace has the same address as an earlier one if
/// that has ended between two steps.
std::uint32_t TaskWalk::trace_of(std::coroutine_handle<> coroutine, unsigned& cost) {
  const TraceContext* const trace = ContextHolder::of(coroutine).trace();
  if (trace == nullptr) return none;
  const auto known = traces_.find(trace);
  if (known != traces_.end() && known->second.step == steps_) return known->second.index;
  cost += 4;
  std::array<char, TraceContext::id_bytes_max> buffer;
  std::vector<TaskSnapshot::Trace>& all = snapshot_.traces;
  const std::string_view id = trace->id(buffer);
  if (known != traces_.end() && all[known->second.index].id == id) {
    known->second.step = steps_;
    return known->second.index;
  }
  if (all.size() >= traces_max) return none;
  TaskSnapshot::Trace made{.kind = std::string(trace->kind()), .id = std::string(id), .name = {}};
  made.name = trace->name(buffer);
  const auto index = static_cast<std::uint32_t>(all.size());
  all.push_back(std::move(made));
  traces_.insert_or_assign(trace, SeenTrace{index, steps_});
  return index;
}

/// Returns the kind of a wait; nullptr if there are too many kinds.
TaskWalk::WaitKind* TaskWalk::kind_of(const void* function, std::string_view awaits) noexcept {
  constexpr std::size_t probes_max = 16;
  const std::size_t hash = mix(mix(0, function), awaits.data());
  for (std::size_t probe = 0; probe < probes_max; ++probe) {
    WaitKind& kind = kinds_[(hash + probe) % kinds_.size()];
    if (kind.awaits == nullptr) {
      kind.function = function;
      kind.awaits = awaits.data();
      return &kind;
    }
    if (kind.function == function && kind.awaits == awaits.data()) return &kind;
  }
  return nullptr;
}

/// Counts a wait that gets no entry of its own.
void TaskWalk::collect(WaitKind* kind, const void* function, std::string_view awaits) {
  if (kind == nullptr) {
    ++snapshot_.left_out;
    return;
  }
  std::vector<TaskSnapshot::Entry>& entries = snapshot_.entries;
  if (kind->collected == none) {
    kind->collected = static_cast<std::uint32_t>(entries.size());
    entries.push_back({.function = function, .awaits = awaits, .collected = true, .count = 0});
    keys_.emplace_back();
  }
  ++entries[kind->collected].count;
}

/// Returns the place in the table for the index of an entry; `none` is in it if there is no entry.
std::uint32_t& TaskWalk::find(const Key& key) noexcept {
  std::size_t hash = mix(mix(0, key.object), key.function);
  hash += std::size_t{key.time} + std::size_t{key.parent} * 31 + std::size_t{key.trace} * 1021;
  for (hash = mix(hash, nullptr);; ++hash) {
    std::uint32_t& place = places_[hash & (places_.size() - 1)];
    if (place == none || keys_[place] == key) return place;
  }
}

std::uint32_t TaskWalk::add(std::uint32_t& place, const Key& key, TaskSnapshot::Entry entry) {
  place = static_cast<std::uint32_t>(snapshot_.entries.size());
  ++found_;
  keys_.push_back(key);
  snapshot_.entries.push_back(entry);
  return place;
}

}  // namespace weir
