// A function object of tests that records where it is called and destroyed.
#pragma once

#include <utility>
#include <vector>

namespace weir {

/// A RecordsItsEnd is a function that records where it is destroyed: on which core or thread.
template <class Where>
class RecordsItsEnd {
 public:
  /// `here` returns the present core or thread.
  RecordsItsEnd(std::vector<Where>& ends, Where (*here)()) noexcept : ends_(&ends), here_(here) {}
  RecordsItsEnd(RecordsItsEnd&& other) noexcept
      : ends_(std::exchange(other.ends_, nullptr)), here_(other.here_) {}
  RecordsItsEnd& operator=(RecordsItsEnd&&) = delete;
  ~RecordsItsEnd() {
    if (ends_ != nullptr) ends_->push_back(here_());
  }
  Where operator()() const { return here_(); }

 private:
  std::vector<Where>* ends_;
  Where (*here_)();
};

}  // namespace weir
