// SiteCore: what one core has for a folder that is served.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weir/http/message/request.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/web/clients/detail/client_slots.hpp"
#include "weir/web/files/detail/file_cache.hpp"
#include "weir/web/files/files.hpp"

namespace weir::http {

/// The cache of a core for one folder, and the places that its clients share: for the large files
/// that are being sent, and for the lists of directories. See ClientSlots for the shares.
/// Threads: its loop's.
/// Lifetime: a shared pointer, which responses have too.
struct SiteCore {
  /// Lists that are made or sent at a time.
  static constexpr std::size_t lists_max = 4;
  /// Files that are opened at a time.
  static constexpr std::size_t loads_max = 32;

  SiteCore(Loop& loop, const FilesOptions& options)
      : cache({options.cache_bytes_max, options.cache_entries_max, options.open_files_max}),
        sent_slots(loop, {{std::max<std::size_t>(options.open_files_max, 1), 0}}),
        list_slots(loop, {{lists_max, 256}, std::chrono::seconds(10)}) {}

  FileCache cache;
  detail::ClientSlots sent_slots;
  detail::ClientSlots list_slots;
  Semaphore loads{loads_max};
};

/// A large file that is being sent has one place. The networks of its readers have shares in the
/// place, which count for them; see FairSlots::try_claim(). If the network that has the place
/// leaves, another one gets it, so that nobody pays for the slow readers of others.
/// Threads: its loop's.
class SentFile {
 public:
  SentFile(std::shared_ptr<SiteCore> core, std::shared_ptr<const FileVariant> variant) noexcept
      : core_(std::move(core)), variant_(std::move(variant)) {}
  SentFile(const SentFile&) = delete;
  SentFile& operator=(const SentFile&) = delete;
  ~SentFile() {
    variant_.reset();
    core_->cache.enforce_limits();
  }

  /// Returns the version with a share in its place, which lasts as long as the pointer; nullptr if
  /// the client has no right to it.
  /// Errors: throws std::bad_alloc.
  static std::shared_ptr<const FileVariant> share(
      const std::shared_ptr<SiteCore>& core, const Request& request,
      const std::shared_ptr<const FileVariant>& variant);

 private:
  /// The readers of one network.
  struct Share {
    Share(std::shared_ptr<SentFile> sent, std::uint64_t of_network) noexcept
        : file(std::move(sent)), network(of_network) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { file->leave(*this); }

    std::shared_ptr<SentFile> file;
    std::uint64_t network;
    detail::ClientSlots::Slot slot;  // of all shares, one has the slot and the others have claims
    std::weak_ptr<Share> self;
  };

  void leave(Share& share) noexcept;

  std::shared_ptr<SiteCore> core_;
  std::shared_ptr<const FileVariant> variant_;
  std::vector<Share*> shares_;
};

}  // namespace weir::http
