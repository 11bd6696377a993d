#include "weir/net/files.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/net/file_transfer.hpp"

namespace weir::files {
namespace {

/// A call of the host's files on a thread, with what a loop has at hand.
struct Threads {
  explicit Threads(const Context& context) noexcept
      : host_files(context.loop->host().files()), lane(shared_pool(*context.loop).file_lane()) {}

  template <class Call, class... Args>
  auto run(Call call, Args... args) const {
    return lane.run(call, borrow(host_files), std::move(args)...);
  }

  FileSystem& host_files;
  const PoolLane& lane;
};

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, slash + 1);
}

std::string temporary_beside(const std::string& path, std::uint64_t number) {
  std::string name = path.substr(0, path.rfind('/') + 1) + ".weir-";
  for (int shift = 60; shift >= 0; shift -= 4) name += "0123456789abcdef"[(number >> shift) & 15];
  return name;
}

/// Gives `temporary` its name, for good. On a thread.
Result<> give_name(FileSystem& host_files, const std::string& temporary, const std::string& path) {
  if (auto renamed = host_files.rename(temporary, path); !renamed) return renamed;
  return host_files.sync_directory(directory_of(path));
}

/// On a thread; `came` says that there was one.
Result<> remove_there(FileSystem& host_files, const std::string& path, bool& came) {
  came = true;
  return host_files.remove(path);
}

}  // namespace

/// An operation on a file, from its start to its end.
class File::Use {
 public:
  enum class Position : std::uint8_t { kept, moved };
  Use(File& file, Position position) noexcept : file_(file), moves_(position == Position::moved) {
    assert(file.descriptor_ && "closed");
    assert((!moves_ || !file.moving_) && "one read() or write() at a time");
    ++file_.in_use_;
    if (moves_) file_.moving_ = true;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    --file_.in_use_;
    if (moves_) file_.moving_ = false;
  }

 private:
  File& file_;
  const bool moves_;
};

File::File(File&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), position_(std::exchange(other.position_, 0)) {
  assert(other.in_use_ == 0);
}

File& File::operator=(File&& other) noexcept {
  assert(in_use_ == 0 && other.in_use_ == 0);
  Descriptor taken(std::move(other.descriptor_));
  std::swap(descriptor_, taken);
  position_ = std::exchange(other.position_, 0);
  return *this;
}

File::~File() {
  assert(in_use_ == 0);
}

Task<Result<Buffer>> File::read(std::size_t most) {
  const Use use(*this, Use::Position::moved);
  auto bytes = co_await read_at(position_, most);
  if (bytes) position_ += bytes->size();
  co_return bytes;
}

Task<Result<Buffer>> File::read_at(std::uint64_t offset, std::size_t most) {
  assert(most > 0 && "nothing would look like the end");
  const Use use(*this, Use::Position::kept);
  Buffer buffer = Buffer::with_capacity(static_cast<std::uint32_t>(std::min(most, transfer_max)));
  const MutableBytes room = buffer.room();
  const auto count = co_await read_some(descriptor_.value(), room, offset);
  if (!count) co_return fail(count.error());
  if (*count == 0) co_return Buffer();
  buffer.grow(*count);
  co_return buffer;
}

Task<Result<>> File::write(Bytes bytes) {
  const Use use(*this, Use::Position::moved);
  const std::uint64_t offset = position_;
  co_return co_await write_all(descriptor_.value(), bytes, offset, position_);
}

Task<Result<>> File::write_at(std::uint64_t offset, Bytes bytes) {
  const Use use(*this, Use::Position::kept);
  std::uint64_t written = 0;
  co_return co_await write_all(descriptor_.value(), bytes, offset, written);
}

Task<Result<>> File::sync() {
  const Use use(*this, Use::Position::kept);
  co_return co_await files::sync(descriptor_.value());
}

Task<Result<>> File::resize(std::uint64_t size) {
  const Use use(*this, Use::Position::kept);
  const Threads threads(co_await this_context());
  co_return co_await threads.run(&FileSystem::resize, descriptor_.value(), size);
}

Task<Result<Status>> File::status() {
  const Use use(*this, Use::Position::kept);
  const Threads threads(co_await this_context());
  co_return co_await threads.run(&FileSystem::file_status, descriptor_.value());
}

Task<> File::close() {
  assert(in_use_ == 0);
  Loop& loop = *(co_await this_context()).loop;
  const auto drop = [](Descriptor file) { file.reset(); };
  // Refused, it is closed here, with the task.
  static_cast<void>(co_await in_context(
      Context{&loop, nullptr}, shared_pool(loop).file_lane().run(drop, std::move(descriptor_))));
}

Task<Result<File>> open(std::string path, Opening how) {
  const Threads threads(co_await this_context());
  const os::FileOpening opening = how;
  auto descriptor = co_await threads.run(&FileSystem::open, std::move(path), opening);
  if (!descriptor) co_return fail(descriptor.error());
  co_return File(std::move(*descriptor));
}

namespace {

Task<Result<std::string>> read_to_the_end(File& file, std::size_t bytes_max) {
  std::string text;
  for (;;) {
    // Sizes that are told beforehand can be wrong: /proc says 0, and files grow.
    const auto bytes =
        co_await file.read(std::max(text.size(), std::size_t{Buffer::default_capacity}));
    if (!bytes) co_return fail(bytes.error());
    if (bytes->empty()) co_return text;
    if (bytes->size() > bytes_max - text.size()) co_return fail(Errc::limit_reached);
    text += bytes->text();
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
  co_await file->close();  // whatever came of it: where the file is far away, closing takes long
  co_return text;
}

Task<Result<>> write_file(std::string path, std::string contents) {
  return replace(std::move(path), write_contents, std::move(contents));
}

Task<Result<Status>> status(std::string path) {
  const Threads threads(co_await this_context());
  co_return co_await threads.run(&FileSystem::path_status, std::move(path));
}

Task<Result<std::vector<Entry>>> list(std::string path, std::size_t entries_max) {
  const Threads threads(co_await this_context());
  co_return co_await threads.run(&FileSystem::list, std::move(path), entries_max);
}

Task<Result<>> rename(std::string from, std::string to) {
  const Threads threads(co_await this_context());
  co_return co_await threads.run(&FileSystem::rename, std::move(from), std::move(to));
}

Task<Result<>> remove(std::string path) {
  const Threads threads(co_await this_context());
  co_return co_await threads.run(&FileSystem::remove, std::move(path));
}

Task<Result<>> make_directory(std::string path, unsigned permissions) {
  const Threads threads(co_await this_context());
  co_return co_await threads.run(&FileSystem::make_directory, std::move(path), permissions);
}

namespace detail {

Task<Result<>> Replacement::open() {
  Host& host = (co_await this_context()).loop->host();
  constexpr int tries_max = 8;
  for (int tries = 1;; ++tries) {
    std::string temporary = temporary_beside(path_, host.random());
    auto file = co_await files::open(temporary, Mode::make_new);
    if (file) {
      file_ = std::move(*file);
      temporary_ = std::move(temporary);
      co_return {};
    }
    if (file.error() != system_error(EEXIST) || tries == tries_max) co_return fail(file.error());
  }
}

Task<Result<>> Replacement::commit() {
  if (auto synced = co_await file_.sync(); !synced) co_return synced;
  co_await file_.close();
  const Threads threads(co_await this_context());
  auto named = co_await threads.lane.run(&give_name, borrow(threads.host_files), temporary_, path_);
  if (named) temporary_.clear();
  co_return named;
}

Task<> Replacement::discard() {
  if (temporary_.empty()) co_return;
  Loop& loop = *(co_await this_context()).loop;
  const Context uncancelled{&loop, nullptr};
  co_await in_context(uncancelled, file_.close());
  // It may fail, as it does when somebody else was quicker.
  const Threads threads(uncancelled);
  bool came = false;
  auto removing =
      threads.lane.run(&remove_there, borrow(threads.host_files), temporary_, borrow(came));
  static_cast<void>(co_await in_context(uncancelled, std::move(removing)));
  // No thread was to be had. Better a moment's wait here than half a file that stays.
  if (!came) static_cast<void>(threads.host_files.remove(temporary_));
  temporary_.clear();
}

}  // namespace detail

}  // namespace weir::files
