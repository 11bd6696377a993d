#include "weir/loop/figures.hpp"

#include <algorithm>

namespace weir {

void FigureSum::add(const Figure& figure) {
  const auto found = std::ranges::find(figures_, figure.name, &Figure::name);
  if (found == figures_.end()) {
    figures_.push_back(figure);
  } else {
    found->value += figure.value;
  }
}

void Figures::add(FigureSource& source) {
  const std::lock_guard lock(mutex_);
  sources_.push_back(source);
}

void Figures::remove(FigureSource& source) {
  const std::lock_guard lock(mutex_);
  source.unlink();
  FigureSum last;
  source.tell(last);
  for (const Figure& each : last.figures()) {
    if (each.kind == Figure::Kind::total) kept_.add(each);
  }
}

FigureSum Figures::read() const {
  const std::lock_guard lock(mutex_);
  FigureSum sum = kept_;
  for (FigureSource* each = sources_.front(); each != nullptr; each = sources_.next(*each)) {
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
