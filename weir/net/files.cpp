#include "weir/net/files.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <coroutine>

#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/loop/contract/detail/operation.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"

namespace weir::files {
namespace {

/// Runs calls of the platform's FileSystem on a thread of the loop's shared pool.
struct FileThreads {
  explicit FileThreads(const Context& context) noexcept
      : host_files(context.loop->platform().files()),
        lane(shared_pool(*context.loop).file_lane()) {}

  template <class Call, class... Args>
  auto run(Call call, Args... args) const {
    return lane.run(call, borrow(host_files), std::move(args)...);
  }

  loop::FileSystem& host_files;
  const PoolLane& lane;
};

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, slash + 1);
}

std::string temporary_path_for(const std::string& path, std::uint64_t number) {
  std::string name = path.substr(0, path.rfind('/') + 1) + ".weir-";
  for (int shift = 60; shift >= 0; shift -= 4) name += "0123456789abcdef"[(number >> shift) & 15];
  return name;
}

/// Renames `temporary` so that the new name survives a loss of power. Runs on a pool thread.
Result<> rename_durably(loop::FileSystem& host_files, const std::string& temporary,
                        const std::string& path) {
  if (auto renamed = host_files.rename(temporary, path); !renamed) return renamed;
  return host_files.sync_directory(directory_of(path));
}

/// Removes a file on a pool thread. Sets `ran`, so that the caller knows that a thread was
/// available.
Result<> remove_on_thread(loop::FileSystem& host_files, const std::string& path, bool& ran) {
  ran = true;
  return host_files.remove(path);
}

}  // namespace

/// Marks a file as in use during one operation.
class File::OperationGuard {
 public:
  enum class Position : std::uint8_t { kept, moved };
  OperationGuard(File& file, Position position) noexcept
      : file_(file), moves_position_(position == Position::moved) {
    assert(file.descriptor_ && "closed");
    assert((!moves_position_ || !file.position_in_use_) && "one read() or write() at a time");
    ++file_.in_use_;
    if (moves_position_) file_.position_in_use_ = true;
  }
  OperationGuard(const OperationGuard&) = delete;
  OperationGuard& operator=(const OperationGuard&) = delete;
  ~OperationGuard() {
    --file_.in_use_;
    if (moves_position_) file_.position_in_use_ = false;
  }

 private:
  File& file_;
  const bool moves_position_;
};

File::File(File&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), position_(std::exchange(other.position_, 0)) {
  assert(other.in_use_ == 0);
}

File& File::operator=(File&& other) noexcept {
  assert(in_use_ == 0 && other.in_use_ == 0);
  loop::Descriptor taken(std::move(other.descriptor_));
  std::swap(descriptor_, taken);
  position_ = std::exchange(other.position_, 0);
  return *this;
}

File::~File() {
  assert(in_use_ == 0);
}

Task<Result<Buffer>> File::read(std::size_t most) {
  const OperationGuard use(*this, OperationGuard::Position::moved);
  auto bytes = co_await read_at(position_, most);
  if (bytes) position_ += bytes->size();
  co_return bytes;
}

Task<Result<Buffer>> File::read_at(std::uint64_t offset, std::size_t most) {
  assert(most > 0 && "nothing would look like the end");
  const OperationGuard use(*this, OperationGuard::Position::kept);
  Buffer buffer = Buffer::with_capacity(static_cast<std::uint32_t>(std::min(most, transfer_max)));
  const MutableBytes room = buffer.room();
  WEIR_CO_TRY(const auto count, co_await read_some(descriptor_.value(), room, offset));
  if (count == 0) co_return Buffer();
  buffer.commit(count);
  co_return buffer;
}

Task<Result<>> File::write(Bytes bytes) {
  const OperationGuard use(*this, OperationGuard::Position::moved);
  const std::uint64_t offset = position_;
  co_return co_await write_all(descriptor_.value(), bytes, offset, position_);
}

Task<Result<>> File::write_at(std::uint64_t offset, Bytes bytes) {
  const OperationGuard use(*this, OperationGuard::Position::kept);
  std::uint64_t written = 0;
  co_return co_await write_all(descriptor_.value(), bytes, offset, written);
}

Task<Result<>> File::sync() {
  const OperationGuard use(*this, OperationGuard::Position::kept);
  co_return co_await files::sync(descriptor_.value());
}

Task<Result<>> File::resize(std::uint64_t size) {
  const OperationGuard use(*this, OperationGuard::Position::kept);
  const FileThreads threads(co_await this_context());
  co_return co_await threads.run(&loop::FileSystem::resize, descriptor_.value(), size);
}

Task<Result<Status>> File::status() {
  const OperationGuard use(*this, OperationGuard::Position::kept);
  const FileThreads threads(co_await this_context());
  co_return co_await threads.run(&loop::FileSystem::file_status, descriptor_.value());
}

Task<> File::close() {
  assert(in_use_ == 0);
  Loop& loop = *(co_await this_context()).loop;
  const auto drop = [](loop::Descriptor file) { file.reset(); };
  // If the pool refuses the call, destroying the task closes the file here.
  std::ignore = co_await in_context(
      Context{&loop, nullptr}, shared_pool(loop).file_lane().run(drop, std::move(descriptor_)));
}

Task<Result<File>> open(std::string path, OpenOptions how) {
  const FileThreads threads(co_await this_context());
  const os::FileOpenOptions opening = how;
  WEIR_CO_TRY(auto descriptor,
              co_await threads.run(&loop::FileSystem::open, std::move(path), opening));
  co_return File(std::move(descriptor));
}

namespace {

Task<Result<std::string>> read_to_the_end(File& file, std::size_t bytes_max) {
  std::string text;
  for (;;) {
    // The size from the file's status can be wrong: it is 0 in /proc, and files grow.
    WEIR_CO_TRY(const auto bytes,
                co_await file.read(std::max(text.size(), std::size_t{Buffer::default_capacity})));
    if (bytes.empty()) co_return text;
    if (bytes.size() > bytes_max - text.size()) co_return fail(Errc::limit_reached);
    text += bytes.text();
  }
}

Task<Result<>> write_contents(File& file, std::string contents) {
  co_return co_await file.write(contents);
}

}  // namespace

Task<Result<std::string>> read_file(std::string path, std::size_t bytes_max) {
  auto file = co_await open(std::move(path));
  if (!file) co_return fail(file.error());
  auto text = co_await read_to_the_end(*file, bytes_max);
  co_await file->close();  // after an error too; closing a remote file takes long
  co_return text;
}

Task<Result<>> write_file(std::string path, std::string contents) {
  return replace(std::move(path), write_contents, std::move(contents));
}

Task<Result<Status>> status(std::string path) {
  const FileThreads threads(co_await this_context());
  co_return co_await threads.run(&loop::FileSystem::path_status, std::move(path));
}

Task<Result<std::vector<Entry>>> list(std::string path, std::size_t entries_max) {
  const FileThreads threads(co_await this_context());
  co_return co_await threads.run(&loop::FileSystem::list, std::move(path), entries_max);
}

Task<Result<>> rename(std::string from, std::string to) {
  const FileThreads threads(co_await this_context());
  co_return co_await threads.run(&loop::FileSystem::rename, std::move(from), std::move(to));
}

Task<Result<>> remove(std::string path) {
  const FileThreads threads(co_await this_context());
  co_return co_await threads.run(&loop::FileSystem::remove, std::move(path));
}

Task<Result<>> make_directory(std::string path, unsigned permissions) {
  const FileThreads threads(co_await this_context());
  co_return co_await threads.run(&loop::FileSystem::make_directory, std::move(path), permissions);
}

namespace detail {

Task<Result<>> PendingFile::open() {
  loop::PlatformClock& clock = (co_await this_context()).loop->platform();
  constexpr int tries_max = 8;
  for (int tries = 1;; ++tries) {
    std::string temporary = temporary_path_for(path_, clock.random());
    auto file = co_await files::open(temporary, Mode::create_new);
    if (file) {
      file_ = std::move(*file);
      temporary_ = std::move(temporary);
      co_return {};
    }
    if (file.error() != system_error(EEXIST) || tries == tries_max) co_return fail(file.error());
  }
}

Task<Result<>> PendingFile::commit() {
  if (auto synced = co_await file_.sync(); !synced) co_return synced;
  co_await file_.close();
  const FileThreads threads(co_await this_context());
  auto named =
      co_await threads.lane.run(&rename_durably, borrow(threads.host_files), temporary_, path_);
  if (named) temporary_.clear();
  co_return named;
}

Task<> PendingFile::discard() {
  if (temporary_.empty()) co_return;
  Loop& loop = *(co_await this_context()).loop;
  const Context uncancelled{&loop, nullptr};
  co_await in_context(uncancelled, file_.close());
  // The removal may fail, for example if another process has removed the file already.
  const FileThreads threads(uncancelled);
  bool ran = false;
  auto removing =
      threads.lane.run(&remove_on_thread, borrow(threads.host_files), temporary_, borrow(ran));
  std::ignore = co_await in_context(uncancelled, std::move(removing));
  // No thread was available. A short wait here is better than an incomplete file that stays.
  if (!ran) static_cast<void>(threads.host_files.remove(temporary_));
}

}  // namespace detail

namespace {

/// Awaits an operation of the backend. The caller fills in its members before.
/// Returns: the number of bytes.
/// Cancel: passed on; returns when the backend does not use the memory any more.
class TransferAwaiter : public loop::FileOperation, CancelNode {
 public:
  TransferAwaiter(Action what, int descriptor) noexcept
      : loop::FileOperation(&resume), CancelNode(transfer_kind) {
    action = what;
    file = descriptor;
  }

  bool await_ready() const noexcept { return false; }
  template <HasContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    const Context& context = handle.promise().context();
    if (!join(context.cancel)) {
      finish(Errc::cancelled);
      return false;
    }
    handle_ = handle;
    backend_ = &context.loop->backend();
    backend_->start_file(*this);
    return true;
  }
  Result<std::size_t> await_resume() const noexcept {
    if (error()) return fail(error());
    return count;
  }

 private:
  static void resume(loop::Runnable& runnable) {
    auto& self = static_cast<TransferAwaiter&>(static_cast<loop::FileOperation&>(runnable));
    self.leave();
    resume_coroutine(self.handle_);
  }
  static void on_cancel(CancelNode& node) {
    auto& self = static_cast<TransferAwaiter&>(node);
    self.backend_->cancel(self);
  }
  static std::coroutine_handle<> coroutine_of(const CancelNode& node) noexcept {
    return static_cast<const TransferAwaiter&>(node).handle_;
  }
  static constexpr CancelNode::Kind transfer_kind{&on_cancel, "file", &coroutine_of};

  std::coroutine_handle<> handle_;
  loop::Backend* backend_ = nullptr;
};

Task<Result<std::size_t>> write_some(Loop& loop, int file, Bytes source, std::uint64_t offset) {
  if (loop.backend().does_files()) {
    TransferAwaiter transfer(loop::FileOperation::Action::write, file);
    transfer.source = source;
    transfer.offset = offset;
    co_return co_await transfer;
  }
  co_return co_await shared_pool(loop).file_lane().run(
      &loop::FileSystem::write_at, borrow(loop.platform().files()), file, borrow(source), offset);
}

}  // namespace

Task<Result<std::size_t>> read_some(int file, MutableBytes target, std::uint64_t offset) {
  if (offset > os::file_offset_max) co_return fail(system_error(EINVAL));
  target = target.first(std::min(target.size(), transfer_max));
  Loop& loop = *(co_await this_context()).loop;
  if (loop.backend().does_files()) {
    TransferAwaiter transfer(loop::FileOperation::Action::read, file);
    transfer.target = target;
    transfer.offset = offset;
    co_return co_await transfer;
  }
  co_return co_await shared_pool(loop).file_lane().run(
      &loop::FileSystem::read_at, borrow(loop.platform().files()), file, borrow(target), offset);
}

Task<Result<>> write_all(int file, Bytes source, std::uint64_t offset, std::uint64_t& written) {
  Loop& loop = *(co_await this_context()).loop;
  while (!source.empty()) {
    if (offset > os::file_offset_max) co_return fail(system_error(EINVAL));
    const Bytes some = source.first(std::min(source.size(), transfer_max));
    WEIR_CO_TRY(const auto count, co_await write_some(loop, file, some, offset));
    if (count == 0) co_return fail(system_error(EIO));  // a retry is useless
    source = source.subspan(count);
    offset += count;
    written += count;
  }
  co_return {};
}

Task<Result<>> sync(int file) {
  Loop& loop = *(co_await this_context()).loop;
  if (!loop.backend().does_files()) {
    co_return co_await shared_pool(loop).file_lane().run(&loop::FileSystem::sync,
                                                         borrow(loop.platform().files()), file);
  }
  TransferAwaiter transfer(loop::FileOperation::Action::sync, file);
  WEIR_CO_TRY(co_await transfer);
  co_return {};
}

}  // namespace weir::files
