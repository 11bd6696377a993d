#include "weir/runtime/task_report.hpp"

#include <memory>
#include <utility>

#include "weir/runtime/detail/task_collection.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/sleep.hpp"

namespace weir {
namespace {

TaskReport make_report(TaskCollection& collection, FunctionNames& names) {
  return collection.report(names);
}

/// Abandons a collection at the end of its report.
class AbandonAtEnd {
 public:
  explicit AbandonAtEnd(TaskCollection& collection) noexcept : collection_(collection) {}
  AbandonAtEnd(const AbandonAtEnd&) = delete;
  AbandonAtEnd& operator=(const AbandonAtEnd&) = delete;
  ~AbandonAtEnd() { collection_.abandon(); }

 private:
  TaskCollection& collection_;
};

}  // namespace

Task<Result<TaskReport>> report_tasks(TaskReportOptions options) {
  constexpr Duration poll = std::chrono::milliseconds(2);
  Loop* const loop = (co_await this_context()).loop;
  const Instant deadline = after(loop->platform().now(), options.timeout);
  const std::shared_ptr<TaskCollection> collection =
      TaskCollection::start(*loop, options.entries_max);
  const AbandonAtEnd abandon(*collection);
  while (!collection->finished() && loop->platform().now() < deadline) {
    if (auto slept = co_await sleep(poll); !slept) co_return fail(slept.error());
  }
  // No loop of this runtime ends before this task.
  collection->note_running();
  auto made = co_await shared_pool(*loop).pool().run(&make_report, borrow(*collection),
                                                     borrow(FunctionNames::of_process()));
  co_return made;
}

}  // namespace weir
