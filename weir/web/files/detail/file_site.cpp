// The look-up of files in the cache and in the folder, and the pages of directories.
#include "weir/web/files/detail/file_site.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/detail/memory_sizes.hpp"
#include "weir/base/detail/shortage.hpp"
#include "weir/base/text/detail/html_escape.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/http/server/detail/client_side.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/uri.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/web/files/detail/site_path.hpp"
#include "weir/web/files/entity_tag.hpp"
#include "weir/web/files/media_types.hpp"

namespace weir::http {
namespace {

/// A file that has not changed for this time gets another time of modification when it changes.
constexpr Duration settling_time = std::chrono::seconds(2);
/// A directory with at most this many times FilesOptions::listing_max entries is read as a whole,
/// so that its list has the first names of all.
constexpr std::size_t sorted_entries_factor = 10;

/// The sites of one core. A site without another owner leaves when a new one comes.
class SiteCores {
 public:
  using Core = std::shared_ptr<SiteCore>;

  /// Returns the core of a site, or nullptr.
  const Core* find(const FileSite& site) const noexcept {
    for (const Slot& each : slots_) {
      if (each.site.get() == &site) return &each.core;
    }
    return nullptr;
  }
  const Core& add(std::shared_ptr<const FileSite> site, Core core) {
    std::erase_if(slots_, [](const Slot& each) { return each.site.use_count() == 1; });
    slots_.push_back({std::move(site), std::move(core)});
    return slots_.back().core;
  }

 private:
  struct Slot {
    std::shared_ptr<const FileSite> site;
    Core core;
  };
  std::vector<Slot> slots_;
};

/// The tag of a small file depends on its bytes, so equal files of other servers have it too. That
/// of a large one depends on its inode, its size and both times. Programs can set the time of
/// modification, as rsync and tar do, but not the time of change. A file that is not settled may
/// change without another time, so its tag is weak until the next comparison.
std::string make_etag(const FileVariant& variant) {
  const os::FileStatus& status = variant.status;
  std::string tag = variant.settled ? "\"" : "W/\"";
  const auto add = [&tag](std::uint64_t number) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
    tag.append(digits.data(), end);
  };
  if (variant.bytes != nullptr) {
    tag = entity_tag_of(*variant.bytes);
    tag.pop_back();
  } else {
    add(status.inode);
    tag += '-';
    add(status.size);
    for (const WallTime time : {status.modified, status.changed}) {
      tag += '-';
      add(static_cast<std::uint64_t>(time.time_since_epoch().count()));
    }
  }
  if (variant.coding != ContentCoding::identity) tag.append("-").append(name_of(variant.coding));
  return tag += '"';
}

/// Returns true if the error says that the path has no file that may be served.
bool is_missing(std::error_code error) noexcept {
  for (const int each : {ENOENT, ENOTDIR, ELOOP, EXDEV, ENAMETOOLONG, EISDIR, EINVAL, EACCES}) {
    if (error == system_error(each)) return true;
  }
  return error == Errc::unsupported;
}

/// A list of a directory, with its place until it is sent.
struct SentList {
  SentList(std::shared_ptr<SiteCore> core_of_list, detail::ClientSlots::Slot place,
           std::string text) noexcept
      : core(std::move(core_of_list)), slot(std::move(place)), page(std::move(text)) {}

  std::shared_ptr<SiteCore> core;
  detail::ClientSlots::Slot slot;
  std::string page;
};

Task<Result<>> send_list(BodySink& sink, SentList& list) {
  constexpr std::size_t piece_max = 64 * 1024;
  ClientSide client(list.slot);
  for (std::string_view rest = list.page; !rest.empty();) {
    const std::string_view piece = rest.substr(0, piece_max);
    WEIR_CO_TRY(co_await client.write(sink, to_bytes(piece)));
    rest.remove_prefix(piece.size());
  }
  co_return {};
}

/// Reads a directory and makes its page. The function blocks.
/// Errors: those of FileSystem::list_beneath().
Result<std::string> list_folder(loop::FileSystem& files, const std::string& root,
                                const std::string& folder, os::BeneathLinks links,
                                const ListingOptions& options) {
  WEIR_TRY(const auto entries,
           files.list_beneath(root, folder, links, options.entries_max * sorted_entries_factor));
  return listing_page(entries, options);
}

Response respond_to_error(std::error_code error) {
  if (error == Errc::cancelled) return Response(error);
  const bool is_busy = error == Errc::limit_reached || weir::detail::is_shortage(error);
  Response response(is_busy ? Status::service_unavailable : Status::internal_error);
  response.set_cause(error);
  return response;
}

/// Marks an entry while a request compares it with its file.
class CheckGuard {
 public:
  explicit CheckGuard(FileEntry* entry) noexcept : entry_(entry) {
    if (entry_ != nullptr) entry_->checking = true;
  }
  CheckGuard(const CheckGuard&) = delete;
  CheckGuard& operator=(const CheckGuard&) = delete;
  ~CheckGuard() {
    if (entry_ != nullptr) entry_->checking = false;
  }

 private:
  FileEntry* entry_;
};

ContentCoding coding_of(const FileHeads& heads) noexcept {
  return heads.variant->coding;
}

std::string_view last_segment(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

FileSite::FileSite(std::string root, FilesOptions options)
    : root_(std::move(root)),
      options_(std::move(options)),
      links_(options_.follow_links ? os::BeneathLinks::inside : os::BeneathLinks::none) {}

const std::shared_ptr<SiteCore>& FileSite::core(Loop& loop) const {
  auto& cores = loop.slots().get<SiteCores>();
  if (const auto* const known = cores.find(*this)) return *known;
  return cores.add(shared_from_this(), std::make_shared<SiteCore>(loop, options_));
}

CoreDemands FileSite::demands() const noexcept {
  using weir::detail::product;
  using weir::detail::sum;
  constexpr std::uint64_t name_bytes = sizeof(os::DirectoryEntry) + 256;
  const std::uint64_t variants = options_.precompressed ? variants_max : 1;
  const std::uint64_t names = product(options_.listing_max, sorted_entries_factor * name_bytes);
  const std::uint64_t list = options_.listing ? sum({names, 2 * listing_bytes_max}) : 0;
  // A request loads its small files, or sends a large one from one buffer.
  return {.owner = this,
          .request_bytes = product(variants, weir::detail::buffer(small_file_max)),
          .core_bytes = sum({options_.cache_bytes_max,
                             product(options_.cache_entries_max, FileCache::entry_bytes),
                             product(SiteCore::lists_max, list)}),
          .descriptors = product(variants, sum({options_.open_files_max, SiteCore::loads_max}))};
}

bool FileSite::is_fresh(const Loop& loop, const FileEntry& entry) const noexcept {
  return entry.checking || loop.now() < after(entry.checked, options_.revalidate_after);
}

Task<Response> FileSite::answer(Request& request, std::string_view raw_path) const {
  std::string storage;
  const auto dotfiles = options_.dotfiles ? Dotfiles::served : Dotfiles::hidden;
  const auto path = decode_site_path(raw_path, dotfiles, storage);
  if (!path) co_return Response(Status::not_found);
  Loop& loop = *(co_await this_context()).loop;
  const FileEntry* const entry = core(loop)->cache.find(*path);
  if (entry != nullptr && is_fresh(loop, *entry)) co_return respond(request, loop, *entry);
  const std::string owned(*path);
  co_return co_await answer_path(request, owned, !options_.spa_fallback.empty());
}

Task<Response> FileSite::answer_path(Request& request, std::string_view path,
                                     bool may_fall_back) const {
  Loop& loop = *(co_await this_context()).loop;
  const std::shared_ptr<SiteCore> core = this->core(loop);
  std::shared_ptr<FileEntry> old;
  if (FileEntry* const found = core->cache.find(path)) {
    if (is_fresh(loop, *found)) co_return respond(request, loop, *found);
    old = found->shared_from_this();
  }
  const CheckGuard guard(old.get());
  auto permit = co_await core->loads.acquire();
  if (!permit) co_return respond_to_error(permit.error());
  const auto entry = co_await load(path, old);
  permit->release();
  if (entry) {
    Response response = respond(request, loop, **entry);  // a large file gets its place
    core->cache.put(path, *entry);
    co_return response;
  }
  core->cache.remove(path);
  co_return co_await answer_missing(request, path, entry.error(), may_fall_back);
}

Task<Result<std::shared_ptr<FileEntry>>> FileSite::load(std::string_view path,
                                                        std::shared_ptr<FileEntry> old) const {
  Loop& loop = *(co_await this_context()).loop;
  FileQuery query{.root = root_,
                  .path = std::string(path),
                  .index = options_.index,
                  .precompressed = options_.precompressed,
                  .links = links_};
  query.wants_directory = path.empty() || path.ends_with('/');
  if (path.ends_with('/')) query.path.pop_back();
  if (old != nullptr) {
    for (const auto& each : old->variants) {
      const auto known = std::ranges::find(neighbours, each.variant->coding, &Neighbour::coding);
      const auto index = known == neighbours.end() ? 0 : known - neighbours.begin() + 1;
      if (each.variant->settled) {
        query.known[static_cast<std::size_t>(index)] = each.variant->status;
      }
    }
  }
  auto loaded = co_await shared_pool(loop).file_lane().run(
      &load_file, borrow(loop.platform().files()), std::move(query));
  if (!loaded) co_return fail(loaded.error());
  co_return make_entry(loop, std::move(*loaded), old.get());
}

std::shared_ptr<FileEntry> FileSite::make_entry(Loop& loop, LoadedFile loaded,
                                                const FileEntry* old) const {
  auto entry = std::make_shared<FileEntry>();
  entry->checked = loop.now();
  entry->is_directory = loaded.is_directory;
  if (loaded.is_directory) return entry;
  const std::string_view extension = extension_of(loaded.path);
  entry->type = media_type_of(loaded.path);
  for (const ExtensionType& each : options_.media_types) {
    if (equals_ignoring_case(each.extension, extension)) entry->own_type = each.media_type;
  }
  const auto rule = std::ranges::find_if(options_.cache_control, [&](const CacheRule& each) {
    return matches_pattern(each.pattern, loaded.path);
  });
  if (rule != options_.cache_control.end()) entry->cache_control = rule->cache_control;
  const WallTime now = loop.platform().wall_time();
  std::vector<std::shared_ptr<const FileVariant>> variants;
  for (std::size_t index = 0; index < loaded.variants.size(); ++index) {
    LoadedVariant& source = loaded.variants[index];
    const ContentCoding coding =
        index == 0 ? ContentCoding::identity : neighbours[index - 1].coding;
    if (source.content == LoadedVariant::Content::missing) continue;
    if (source.content == LoadedVariant::Content::unchanged) {
      variants.push_back(std::ranges::find(old->variants, coding, coding_of)->variant);
      continue;
    }
    auto variant = std::make_shared<FileVariant>();
    variant->coding = coding;
    variant->status = source.status;
    // Programs can set `modified`, but not `changed`.
    variant->settled = now - source.status.changed > settling_time;
    variant->bytes = std::move(source.bytes);
    variant->file = std::move(source.file);
    if (variant->file) variant->open = OpenFiles::Use(core(loop)->cache.open_files());
    variant->etag = make_etag(*variant);
    variant->modified = std::min(source.status.modified, now);
    variant->last_modified = Date(variant->modified).text();
    variants.push_back(std::move(variant));
  }
  const bool has_neighbours = variants.size() > 1;
  for (auto& each : variants) {
    entry->variants.push_back(make_heads(*entry, std::move(each), has_neighbours));
  }
  return entry;
}

Response FileSite::respond(Request& request, Loop& loop, const FileEntry& entry) const {
  if (entry.is_directory) return redirect_to_directory(request);
  auto chosen = entry.variants.begin();
  if (entry.variants.size() > 1) {
    std::array<ContentCoding, variants_max> offered;
    const auto end = std::ranges::transform(entry.variants, offered.begin(), coding_of).out;
    const ContentCoding coding =
        AcceptEncoding(request.head()).choose(std::span(offered.begin(), end));
    chosen = std::ranges::find(entry.variants, coding, coding_of);
  }
  return respond_with_file(request, loop, core(loop), entry, *chosen);
}

Task<Response> FileSite::answer_missing(Request& request, std::string_view path,
                                        std::error_code error, bool may_fall_back) const {
  if (!is_missing(error)) co_return respond_to_error(error);
  const bool is_directory = path.empty() || path.ends_with('/');
  if (options_.listing && is_directory && error == system_error(ENOENT)) {
    co_return co_await list(request, path);
  }
  if (may_fall_back && last_segment(path).find('.') == path.npos) {
    co_return co_await answer_path(request, options_.spa_fallback, false);
  }
  co_return Response(error == system_error(EACCES) ? Status::forbidden : Status::not_found);
}

Task<Response> FileSite::list(Request& request, std::string_view path) const {
  Loop& loop = *(co_await this_context()).loop;
  const std::shared_ptr<SiteCore> core = this->core(loop);
  auto acquiring = core->list_slots.acquire(core->list_slots.client_of(request));
  auto slot = co_await std::move(acquiring);
  if (!slot) co_return slot.error() == Errc::cancelled ? Response(slot.error()) : busy_response();
  std::string folder(path.substr(0, path.size() - (path.empty() ? 0 : 1)));
  const ListingOptions listing{.at_root = path.empty(),
                               .dotfiles = options_.dotfiles,
                               .links = options_.follow_links,
                               .entries_max = options_.listing_max};
  auto page = co_await shared_pool(loop).file_lane().run(
      &list_folder, borrow(loop.platform().files()), root_, std::move(folder), links_, listing);
  if (!page && is_missing(page.error())) co_return Response(Status::not_found);
  if (!page && page.error() == Errc::limit_reached) {
    Response response(Status::internal_error);
    response.set_cause(page.error());
    co_return response;
  }
  if (!page) co_return respond_to_error(page.error());
  const std::uint64_t length = page->size();
  auto list = std::make_unique<SentList>(core, std::move(*slot), std::move(*page));
  auto send = [list = std::move(list)](BodySink& sink) { return send_list(sink, *list); };
  co_return Response(Status::ok, html_type, Body(StreamFunction(std::move(send)), length));
}

Response redirect_to_directory(const Request& request) {
  std::string location = "./";
  location.append(last_segment(request.path_text())).append("/");
  if (!request.query_text().empty()) location.append("?").append(request.query_text());
  return redirect(location, Status::moved_permanently);
}

std::string listing_page(const std::vector<os::DirectoryEntry>& entries,
                         const ListingOptions& options) {
  std::string page =
      "<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>Files</title></head><body>\n"
      "<ul>\n";
  if (!options.at_root) page += "<li><a href=\"../\">../</a></li>\n";
  std::size_t listed = 0;
  bool has_more = false;
  for (const os::DirectoryEntry& each : entries) {
    const bool is_link = each.kind == os::FileKind::link;
    const bool is_hidden = !options.dotfiles && each.name.starts_with('.');
    if (is_hidden || (is_link && !options.links) || each.kind == os::FileKind::other) continue;
    if (each.name.find('\\') != each.name.npos) continue;  // it is not served
    has_more = listed == options.entries_max || page.size() >= listing_bytes_max;
    if (has_more) break;
    ++listed;
    const std::string_view slash = each.kind == os::FileKind::directory ? "/" : "";
    page.append("<li><a href=\"./").append(escape_html(encode_segment(each.name))).append(slash);
    page.append("\">").append(escape_html(each.name)).append(slash).append("</a></li>\n");
  }
  page.append("</ul>\n");
  if (has_more) {
    page.append("<p>These are the first ").append(std::to_string(listed));
    page.append(" names; the folder has more.</p>\n");
  }
  return page.append("</body></html>\n");
}

}  // namespace weir::http
