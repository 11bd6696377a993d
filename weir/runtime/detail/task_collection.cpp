#include "weir/runtime/detail/task_collection.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include "weir/os/detail/process/symbolizer.hpp"
#include "weir/runtime/detail/core.hpp"

namespace weir {
namespace {

/// Removes the parts of a function's name that do not help to find it: the type that a template
/// returns, and unnamed namespaces.
std::string short_name(std::string name) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (depth == 0 && name.compare(at, 8, "operator") == 0) break;
    const char each = name[at];
    if (each == '<' || each == '(' || each == '{' || each == '[') ++depth;
    if (each == '>' || each == ')' || each == '}' || each == ']') --depth;
    if (each == ' ' && depth == 0) begin = at + 1;
  }
  name.erase(0, begin);
  constexpr std::string_view unnamed = "(anonymous namespace)::";
  for (auto at = name.find(unnamed); at != name.npos; at = name.find(unnamed)) {
    name.erase(at, unnamed.size());
  }
  // Limit for names of nested templates; the beginning is enough to find the function.
  constexpr std::size_t name_max = 160;
  if (name.size() > name_max) name.replace(name_max, name.npos, "...");
  return name;
}

}  // namespace

FunctionNames& FunctionNames::of_process() {
  static FunctionNames names;
  return names;
}

FunctionNames::Map FunctionNames::find(std::span<const void* const> addresses) {
  Map found;
  std::vector<const void*> unknown;
  std::vector<std::uintptr_t> numbers;
  const std::lock_guard lock(mutex_);
  for (const void* const address : addresses) {
    const auto known = names_.find(address);
    const auto [place, fresh] =
        found.emplace(address, known == names_.end() ? std::string() : known->second);
    if (!fresh || known != names_.end()) continue;
    unknown.push_back(address);
    numbers.push_back(reinterpret_cast<std::uintptr_t>(address));
  }
  if (unknown.empty()) return found;
  const os::Symbols symbols = os::symbolize(numbers);
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    std::string& name = found[unknown[i]];
    name = short_name(symbols.names[i].function);
    if (names_.size() < names_max) names_.emplace(unknown[i], name);
  }
  return found;
}

std::shared_ptr<TaskCollection> TaskCollection::start(Loop& loop, std::size_t entries_max) {
  const auto loops = loop.group().loops();
  auto& unfinished = loop.group().slots().get<Unfinished>();
  auto collection = std::make_shared<TaskCollection>(loops, entries_max);
  collection->list_ = &unfinished;
  {
    const std::lock_guard lock(unfinished.mutex);
    unfinished.all.push_back(collection);
  }
  for (const auto& part : collection->parts_) part->post();
  return collection;
}

TaskCollection::TaskCollection(std::span<Loop* const> loops, std::size_t entries_max)
    : entries_max_(entries_max), unfinished_(loops.size()) {
  for (Loop* const each : loops) parts_.push_back(std::make_unique<Part>(*this, *each));
}

void TaskCollection::Part::run(loop::Runnable& self) {
  auto& part = static_cast<Part&>(self);
  // One step in each turn, because a loop that has something to run takes no input meanwhile.
  if (!part.step()) return part.loop_.observe_turn_end(part);
  part.walk_.reset();
  // release: a reader sees the snapshot.
  part.finished_.store(true, std::memory_order_release);
  part.collection_.on_part_finished();
}

void TaskCollection::Part::on_turn_end(TurnObserver& self) {
  auto& part = static_cast<Part&>(self);
  part.loop_.ready(part);
}

/// Returns true if the walk has ended.
bool TaskCollection::Part::step() {
  // relaxed: it only saves work.
  if (collection_.abandoned_.load(std::memory_order_relaxed)) return true;
  try {
    // Its memory is allocated in a step of its own.
    if (!walk_) {
      walk_.emplace(loop_, collection_.entries_max_);
      return false;
    }
    if (!walk_->step()) return false;
    snapshot_ = std::move(walk_->snapshot());
  } catch (const std::bad_alloc&) {
    // The report says that this core is incomplete.
  }
  return true;
}

/// The collection may be destroyed when this returns.
void TaskCollection::on_part_finished() {
  Unfinished& list = *list_;
  // acq_rel: see finished().
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::shared_ptr<TaskCollection> last;
  const std::lock_guard lock(list.mutex);
  const auto found = std::ranges::find(list.all, this, &std::shared_ptr<TaskCollection>::get);
  last = std::move(*found);
  list.all.erase(found);
}

void TaskCollection::note_running() {
  for (const auto& part : parts_) part->note_running();
}

TaskReport TaskCollection::report(FunctionNames& names) const {
  std::vector<const void*> addresses;
  std::vector<bool> answered;  // asked once, since a part may finish meanwhile
  for (const auto& part : parts_) {
    if (part->running() != nullptr) addresses.push_back(part->running());
    answered.push_back(part->finished());
    if (!answered.back()) continue;
    for (const TaskSnapshot::Entry& each : part->snapshot().entries) {
      addresses.push_back(each.function);
    }
  }
  const FunctionNames::Map name_of = names.find(addresses);
  TaskReport report;
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    const auto& part = parts_[index];
    TaskCore core{.core = part->loop().core(), .answered = answered[index]};
    if (!core.answered) {
      if (part->running() != nullptr) core.runs = name_of.at(part->running());
      report.cores.push_back(std::move(core));
      continue;
    }
    const TaskSnapshot& snapshot = part->snapshot();
    core.complete = snapshot.complete;
    core.waits = snapshot.waits;
    core.left_out = snapshot.left_out;
    const std::size_t first = report.entries.size();
    for (const TaskSnapshot::Entry& each : snapshot.entries) {
      TaskEntry& entry = report.entries.emplace_back();
      entry.core = core.core;
      entry.function = name_of.at(each.function);
      entry.awaits = each.awaits;
      entry.run_by = each.run_by;
      if (each.has_age) entry.age = each.age;
      if (each.trace != TaskSnapshot::none) {
        const TaskSnapshot::Trace& trace = snapshot.traces[each.trace];
        entry.trace_kind = trace.kind;
        entry.trace_id = trace.id;
        entry.trace_name = trace.name;
      }
      if (each.parent != TaskSnapshot::none) entry.parent = first + each.parent;
      entry.count = each.count;
      entry.collected = each.collected;
    }
    report.cores.push_back(std::move(core));
  }
  return report;
}

Runtime::TaskDump::~TaskDump() {
  ending_.store(true, std::memory_order_relaxed);  // it only saves time
  thread_.reset();
  if (collection_ != nullptr) collection_->abandon();
}

void Runtime::TaskDump::request() {
  // release pairs with step(), for the thread of a simulation; the wake-up orders the others.
  requested_.store(true, std::memory_order_release);
  if (thread_ != nullptr) return thread_->wake();
  thread_ = runtime_.platform_.make_thread({.name = "weir-tasks"}, *this);
  if (const auto started = thread_->start(); !started) {
    thread_.reset();
    runtime_.platform_.log("weir: SIGQUIT: cannot report tasks: " + started.error().message());
  }
}

std::optional<Instant> Runtime::TaskDump::step() noexcept {
  constexpr Duration poll = std::chrono::milliseconds(5);
  try {
    if (collection_ == nullptr) {
      if (!requested_.exchange(false, std::memory_order_acquire)) return never;
      begin();
      if (collection_ == nullptr) return never;
    }
    const Instant now = runtime_.platform_.now();
    if (!collection_->finished() && now < deadline_) return after(now, poll);
    end();
  } catch (const std::bad_alloc&) {
    collection_ = nullptr;
    runtime_.platform_.log("weir: SIGQUIT: cannot report tasks (out of memory)");
  }
  return never;
}

void Runtime::TaskDump::begin() {
  // The mutex keeps the cores alive.
  const std::lock_guard lock(runtime_.mutex_);
  if (runtime_.cores_.empty()) return;
  const std::size_t entries =
      std::min(TaskReportOptions().entries_max, entries_max / runtime_.cores_.size());
  collection_ = TaskCollection::start(runtime_.cores_.front()->loop(), entries);
  deadline_ = after(runtime_.platform_.now(), timeout);
}

void Runtime::TaskDump::end() {
  if (!collection_->finished()) {
    // A loop is stopped under this mutex, and its thread does not end before.
    const std::lock_guard lock(runtime_.mutex_);
    const auto& cores = runtime_.cores_;
    if (!cores.empty() && !cores.front()->loop().stopping()) collection_->note_running();
    collection_->abandon();
  }
  const std::shared_ptr<TaskCollection> collection = std::exchange(collection_, nullptr);
  if (ending_.load(std::memory_order_relaxed)) return;
  log(collection->report(FunctionNames::of_process()).to_text());
}

/// A log without a reader takes its time for each line.
void Runtime::TaskDump::log(std::string_view text) const {
  runtime_.platform_.log("weir: SIGQUIT: tasks of this process:");
  for (std::size_t lines = 0; !text.empty(); ++lines) {
    if (ending_.load(std::memory_order_relaxed)) {
      runtime_.platform_.log("... (more lines are left out: the process ends)");
      break;
    }
    if (lines == lines_max) {
      runtime_.platform_.log("... (more lines are left out)");
      break;
    }
    const std::size_t end = text.find('\n');
    runtime_.platform_.log(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  runtime_.platform_.log("weir: SIGQUIT: end of the tasks");
}

}  // namespace weir
