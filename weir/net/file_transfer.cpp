#include "weir/net/file_transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <coroutine>

#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/loop/contract/detail/operation.hpp"

namespace weir::files {
namespace {

/// Awaits an operation of the backend's, which is filled in before. Gives its count.
/// Cancel: passed on; it returns when the backend has let go of the memory.
class Transfer : public FileOperation, CancelNode {
 public:
  Transfer(Action what, int descriptor) noexcept : FileOperation(&resume), CancelNode(&ask) {
    action = what;
    file = descriptor;
  }

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    const Context& context = handle.promise().context();
    if (context.cancelled()) {
      finish(Errc::cancelled);
      return false;
    }
    handle_ = handle;
    backend_ = &context.loop->backend();
    backend_->start_file(*this);
    if (context.cancel != nullptr) context.cancel->add(*this);
    return true;
  }
  Result<std::size_t> await_resume() const noexcept {
    if (error()) return fail(error());
    return count;
  }

 private:
  static void resume(Runnable& runnable) {
    auto& self = static_cast<Transfer&>(static_cast<FileOperation&>(runnable));
    static_cast<CancelNode&>(self).unlink();
    go_on_with(self.handle_);
  }
  static void ask(CancelNode& node) {
    auto& self = static_cast<Transfer&>(node);
    self.backend_->cancel(self);
  }

  std::coroutine_handle<> handle_;
  Backend* backend_ = nullptr;
};

Task<Result<std::size_t>> write_some(Loop& loop, int file, Bytes source, std::uint64_t offset) {
  if (loop.backend().does_files()) {
    Transfer transfer(FileOperation::Action::write, file);
    transfer.source = source;
    transfer.offset = offset;
    co_return co_await transfer;
  }
  co_return co_await shared_pool(loop).file_lane().run(
      &FileSystem::write_at, borrow(loop.host().files()), file, borrow(source), offset);
}

}  // namespace

Task<Result<std::size_t>> read_some(int file, MutableBytes target, std::uint64_t offset) {
  if (offset > os::file_offset_max) co_return fail(system_error(EINVAL));
  target = target.first(std::min(target.size(), transfer_max));
  Loop& loop = *(co_await this_context()).loop;
  if (loop.backend().does_files()) {
    Transfer transfer(FileOperation::Action::read, file);
    transfer.target = target;
    transfer.offset = offset;
    co_return co_await transfer;
  }
  co_return co_await shared_pool(loop).file_lane().run(
      &FileSystem::read_at, borrow(loop.host().files()), file, borrow(target), offset);
}

Task<Result<>> write_all(int file, Bytes source, std::uint64_t offset, std::uint64_t& written) {
  Loop& loop = *(co_await this_context()).loop;
  while (!source.empty()) {
    if (offset > os::file_offset_max) co_return fail(system_error(EINVAL));
    const Bytes some = source.first(std::min(source.size(), transfer_max));
    const auto count = co_await write_some(loop, file, some, offset);
    if (!count) co_return fail(count.error());
    if (*count == 0) co_return fail(system_error(EIO));  // of no use to try again
    source = source.subspan(*count);
    offset += *count;
    written += *count;
  }
  co_return {};
}

Task<Result<>> sync(int file) {
  Loop& loop = *(co_await this_context()).loop;
  if (!loop.backend().does_files()) {
    co_return co_await shared_pool(loop).file_lane().run(&FileSystem::sync,
                                                         borrow(loop.host().files()), file);
  }
  Transfer transfer(FileOperation::Action::sync, file);
  const auto synced = co_await transfer;
  if (!synced) co_return fail(synced.error());
  co_return {};
}

}  // namespace weir::files
