// The handling of exceptions in promises.
#include "weir/task/detail/promise.hpp"

namespace weir {

void PromiseBase::keep_exception(std::exception_ptr& exception) noexcept {
  exception = std::current_exception();
}

void PromiseBase::throw_on(const std::exception_ptr& exception) {
  std::rethrow_exception(exception);
}

}  // namespace weir
