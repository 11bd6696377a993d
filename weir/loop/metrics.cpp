#include "weir/loop/metrics.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace weir {

void MetricSnapshot::add(const Metric& metric) {
  const auto found = std::ranges::find(metrics_, metric.name, &Metric::name);
  if (found == metrics_.end()) {
    metrics_.push_back(metric);
  } else {
    found->value += metric.value;
  }
}

/// The sources of one Metrics, and the retained counters of destroyed ones. It lives until all of
/// them have released it.
struct MetricSource::Registry {
  std::mutex mutex;  // guards the members below
  detail::List<MetricSource> sources;
  MetricSnapshot retained;
};

MetricSource::~MetricSource() {
  assert(registry_ == nullptr && "the derived destructor calls detach()");
}

void MetricSource::attach(const std::shared_ptr<Registry>& sources) noexcept {
  if (registry_ == sources) return;
  detach();
  const std::lock_guard lock(sources->mutex);
  sources->sources.push_back(*this);
  registry_ = sources;
}

void MetricSource::detach() noexcept {
  const std::shared_ptr<Registry> registry = std::exchange(registry_, nullptr);
  if (registry == nullptr) return;
  const std::lock_guard lock(registry->mutex);
  unlink();
  try {
    MetricSnapshot last;
    collect(last);
    for (const Metric& each : last.metrics()) {
      if (each.kind == Metric::Kind::counter) registry->retained.add(each);
    }
  } catch (const std::bad_alloc&) {
    // Some of the totals are missing from now on.
  }
}

Metrics::Metrics() : registry_(std::make_shared<MetricSource::Registry>()) {}

MetricSnapshot Metrics::read() const {
  const std::lock_guard lock(registry_->mutex);
  const auto& sources = registry_->sources;
  MetricSnapshot sum = registry_->retained;
  for (const MetricSource* each = sources.front(); each != nullptr; each = sources.next(*each)) {
    each->collect(sum);
  }
  return sum;
}

void Metrics::on_thread_start() {
  const std::lock_guard lock(mutex_);
  thread_ = os::ThreadProbe::of_this_thread();
  thread_start_cpu_time_ = thread_->cpu_time();
}

void Metrics::on_thread_end() {
  const std::lock_guard lock(mutex_);
  ended_threads_cpu_time_ += thread_->cpu_time() - thread_start_cpu_time_;
  thread_.reset();
}

Duration Metrics::cpu_time() const {
  const std::lock_guard lock(mutex_);
  return thread_ ? ended_threads_cpu_time_ + (thread_->cpu_time() - thread_start_cpu_time_)
                 : ended_threads_cpu_time_;
}

}  // namespace weir
