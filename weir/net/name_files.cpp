#include "weir/net/name_files.hpp"

#include <cerrno>
#include <utility>

#include "weir/runtime/pool/detail/shared_pool.hpp"

namespace weir::names {
namespace {

constexpr std::size_t file_bytes_max = 16 * 1024 * 1024;

bool same(const files::Status& left, const files::Status& right) noexcept {
  return left.size == right.size && left.modified == right.modified;
}

/// Whether a change from now on may leave the file with the same time: file systems have coarse
/// clocks.
bool may_change_unseen(const files::Status& status, WallTime now) noexcept {
  constexpr Duration coarsest = std::chrono::seconds(2);
  return status.modified > now - coarsest;
}

}  // namespace

Task<std::optional<std::string>> NameFiles::read_changed(Watched& file) {
  if (file.path.empty()) co_return std::nullopt;
  const Context context = co_await this_context();
  const auto status = co_await files::status(file.path);
  if (status && file.seen && same(*status, *file.seen)) co_return std::nullopt;
  const WallTime now = context.loop->host().wall_time();
  Result<std::string> text;
  if (!status) {
    text = fail(status.error());
  } else if (status->size <= file_bytes_max) {
    text = co_await files::read_file(file.path, file_bytes_max);
  }
  const bool missing = !text && text.error() == system_error(ENOENT);
  if (!text && !missing) co_return std::nullopt;
  file.seen.reset();
  if (missing) co_return std::string();
  if (!may_change_unseen(*status, now)) file.seen = *status;
  co_return std::move(*text);
}

/// A long one (they are used to block half the internet) is read on another thread.
Task<> NameFiles::take_hosts(std::string text) {
  constexpr std::size_t bytes_at_once_max = 64 * 1024;
  if (text.size() <= bytes_at_once_max) {
    hosts_ = HostsFile::parse(text);
    co_return;
  }
  const Context context = co_await this_context();
  const auto parse = [](const std::string& long_text) { return HostsFile::parse(long_text); };
  auto parsed = co_await shared_pool(*context.loop).pool().run(parse, std::move(text));
  if (parsed) {
    hosts_ = std::move(*parsed);
  } else {
    hosts_file_.seen.reset();  // another time
  }
}

Task<Result<>> NameFiles::refresh() {
  const Context context = co_await this_context();
  Loop& loop = *context.loop;
  const auto fresh = [&] { return loop.now() < fresh_until_; };
  if (fresh()) co_return {};
  const auto guard = co_await reading_.lock();
  if (!guard) co_return fail(guard.error());
  if (fresh()) co_return {};  // another has read them meanwhile
  auto hosts = co_await read_changed(hosts_file_);
  if (hosts) co_await take_hosts(std::move(*hosts));
  if (const auto conf = co_await read_changed(resolv_conf_file_)) conf_ = ResolvConf::parse(*conf);
  if (context.cancelled()) co_return fail(Errc::cancelled);
  fresh_until_ = after(loop.now(), period);
  co_return {};
}

}  // namespace weir::names
