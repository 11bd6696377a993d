#include "weir/loop/figures.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace weir {

void FigureSum::add(const Figure& figure) {
  const auto found = std::ranges::find(figures_, figure.name, &Figure::name);
  if (found == figures_.end()) {
    figures_.push_back(figure);
  } else {
    found->value += figure.value;
  }
}

/// Those of one Figures, and what is left of others. It lives until all have let go of it.
struct FigureSource::Sources {
  std::mutex mutex;  // guards what follows
  List<FigureSource> present;
  FigureSum kept;
};

FigureSource::~FigureSource() {
  assert(among_ == nullptr && "it leaves in its destructor");
}

void FigureSource::join(const std::shared_ptr<Sources>& sources) noexcept {
  if (among_ == sources) return;
  leave();
  const std::lock_guard lock(sources->mutex);
  sources->present.push_back(*this);
  among_ = sources;
}

void FigureSource::leave() noexcept {
  const std::shared_ptr<Sources> among = std::exchange(among_, nullptr);
  if (among == nullptr) return;
  const std::lock_guard lock(among->mutex);
  unlink();
  try {
    FigureSum last;
    tell(last);
    for (const Figure& each : last.figures()) {
      if (each.kind == Figure::Kind::total) among->kept.add(each);
    }
  } catch (const std::bad_alloc&) {
    // Some of what it has counted is missing from now on.
  }
}

Figures::Figures() : sources_(std::make_shared<FigureSource::Sources>()) {}

FigureSum Figures::read() const {
  const std::lock_guard lock(sources_->mutex);
  const auto& present = sources_->present;
  FigureSum sum = sources_->kept;
  for (const FigureSource* each = present.front(); each != nullptr; each = present.next(*each)) {
    each->tell(sum);
  }
  return sum;
}

void Figures::thread_begins() {
  const std::lock_guard lock(mutex_);
  thread_ = os::ThreadProbe::of_this_thread();
  cpu_time_before_ = thread_->cpu_time();
}

void Figures::thread_ends() {
  const std::lock_guard lock(mutex_);
  cpu_time_kept_ += thread_->cpu_time() - cpu_time_before_;
  thread_.reset();
}

Duration Figures::cpu_time() const {
  const std::lock_guard lock(mutex_);
  return thread_ ? cpu_time_kept_ + (thread_->cpu_time() - cpu_time_before_) : cpu_time_kept_;
}

}  // namespace weir
