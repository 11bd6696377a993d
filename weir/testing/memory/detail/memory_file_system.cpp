// The tree of simulated files.
#include "weir/testing/memory/detail/memory_file_system.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/network/detail/nondeterminism.hpp"

namespace weir {
namespace {

constexpr std::size_t name_max = 255;
constexpr std::size_t path_max = 4096;
constexpr unsigned umask_bits = 022;

constexpr unsigned may_read = 0400;
constexpr unsigned may_write = 0200;
constexpr unsigned may_enter = 0100;

Result<> check(const MemoryNode& node, unsigned wanted) {
  if ((node.permissions & wanted) == wanted) return {};
  return fail(system_error(EACCES));
}

/// Checks that names may be added to and removed from `directory`.
Result<> check_changeable(const MemoryNode& directory) {
  return check(directory, may_write | may_enter);
}

bool is_directory(const MemoryNode& node) noexcept {
  return node.kind == os::FileKind::directory;
}

bool contains(const MemoryNode& directory, const MemoryNode& node) {
  if (&directory == &node) return true;
  for (const auto& [name, child] : directory.children) {
    if (contains(*child, node)) return true;
  }
  return false;
}

}  // namespace

MemoryFileSystem::MemoryFileSystem(MemoryPlatform& platform)
    : platform_(platform), root_(make(os::FileKind::directory, 0777)) {
  root_->children["tmp"] = root_->synced_children["tmp"] = make(os::FileKind::directory, 0777);
}

MemoryFileSystem::~MemoryFileSystem() {
  forget(std::move(root_));
}

// Clears both kinds of children, because moved directories may refer to each other among the
// synced ones.
void MemoryFileSystem::forget(Node node) {
  for (auto& names :
       {std::exchange(node->children, {}), std::exchange(node->synced_children, {})}) {
    for (const auto& [name, child] : names) forget(child);
  }
}

MemoryFileSystem::Node MemoryFileSystem::make(os::FileKind kind, unsigned permissions) {
  auto node = std::make_shared<MemoryNode>(kind, permissions & 0777 & ~umask_bits, disk_);
  node->modified = platform_.wall_time();
  node->inode = ++inodes_;
  return node;
}

// --- names ---------------------------------------------------------------------------------------

Result<MemoryFileSystem::PathLookup> MemoryFileSystem::locate(const std::string& path) const {
  WEIR_TRY(os::validate_path(path));
  if (path.size() >= path_max) return fail(system_error(ENAMETOOLONG));
  std::vector<Node> above;  // ancestors of the current directory, for ".."
  PathLookup lookup;
  lookup.node = root_;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = std::string_view(path).substr(at, end - at);
    at = end + 1;
    lookup.as_directory = end < path.size();
    if (part.empty()) continue;
    if (part.size() > name_max) return fail(system_error(ENAMETOOLONG));
    if (lookup.node == nullptr) return fail(system_error(ENOENT));
    if (!is_directory(*lookup.node)) return fail(system_error(ENOTDIR));
    WEIR_TRY(check(*lookup.node, may_enter));
    if (part == ".") continue;
    if (part == "..") {
      if (above.empty()) continue;
      lookup.node = std::exchange(lookup.parent, nullptr);
      above.pop_back();
      if (!above.empty()) lookup.parent = above.back();
      lookup.name.clear();
      continue;
    }
    lookup.parent = lookup.node;
    above.push_back(lookup.node);
    lookup.name = part;
    const auto child = lookup.node->children.find(lookup.name);
    lookup.node = child == lookup.parent->children.end() ? nullptr : child->second;
  }
  const bool is_file = lookup.node != nullptr && !is_directory(*lookup.node);
  if (lookup.as_directory && is_file) return fail(system_error(ENOTDIR));
  return lookup;
}

Result<MemoryFileSystem::Node> MemoryFileSystem::find(const std::string& path) const {
  WEIR_TRY(auto lookup, locate(path));
  if (lookup.node == nullptr) return fail(system_error(ENOENT));
  return std::move(lookup.node);
}

Result<MemoryFileSystem::Node> MemoryFileSystem::find_directory(const std::string& path) const {
  auto node = find(path);
  if (node && !is_directory(**node)) return fail(system_error(ENOTDIR));
  return node;
}

void MemoryFileSystem::insert(const PathLookup& lookup, Node node) {
  lookup.parent->children[lookup.name] = std::move(node);
  lookup.parent->modified = platform_.wall_time();
}

void MemoryFileSystem::remove_entry(const PathLookup& lookup) {
  lookup.parent->children.erase(lookup.name);
  lookup.parent->modified = platform_.wall_time();
}

/// Checks that the process was not killed; a killed one must not change files.
Result<> MemoryFileSystem::check_alive() const {
  return platform_.nondeterminism().is_isolated() ? Result<>(fail(system_error(EINTR)))
                                                  : Result<>();
}

Result<> MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  if (auto alive = check_alive(); !alive) return alive;
  const auto source = locate(from);
  if (!source) return fail(source.error());
  const auto target = locate(to);
  if (!target) return fail(target.error());
  if (source->node == nullptr) return fail(system_error(ENOENT));
  if (source->name.empty() || target->name.empty()) return fail(system_error(EBUSY));
  if (auto checked = check_changeable(*source->parent); !checked) return checked;
  if (auto checked = check_changeable(*target->parent); !checked) return checked;
  const bool directory = is_directory(*source->node);
  if (target->as_directory && !directory) return fail(system_error(ENOTDIR));
  if (source->node == target->node) return {};
  if (directory && contains(*source->node, *target->parent)) return fail(system_error(EINVAL));
  if (target->node != nullptr) {
    if (directory && !is_directory(*target->node)) return fail(system_error(ENOTDIR));
    if (!directory && is_directory(*target->node)) return fail(system_error(EISDIR));
    if (!target->node->children.empty()) return fail(system_error(ENOTEMPTY));
  }
  insert(*target, source->node);
  remove_entry(*source);
  return {};
}

Result<> MemoryFileSystem::remove(const std::string& path) {
  if (auto alive = check_alive(); !alive) return alive;
  const auto lookup = locate(path);
  if (!lookup) return fail(lookup.error());
  if (lookup->node == nullptr) return fail(system_error(ENOENT));
  if (lookup->name.empty()) return fail(system_error(EBUSY));
  if (auto checked = check_changeable(*lookup->parent); !checked) return checked;
  if (!lookup->node->children.empty()) return fail(system_error(ENOTEMPTY));
  remove_entry(*lookup);
  return {};
}

Result<> MemoryFileSystem::make_directory(const std::string& path, unsigned permissions) {
  if (auto alive = check_alive(); !alive) return alive;
  const auto lookup = locate(path);
  if (!lookup) return fail(lookup.error());
  if (lookup->node != nullptr) return fail(system_error(EEXIST));
  if (auto checked = check_changeable(*lookup->parent); !checked) return checked;
  insert(*lookup, make(os::FileKind::directory, permissions));
  return {};
}

Result<std::vector<os::DirectoryEntry>> MemoryFileSystem::list(const std::string& path,
                                                               std::size_t entries_max) {
  WEIR_TRY(const auto directory, find_directory(path));
  WEIR_TRY(check(*directory, may_read));
  if (directory->children.size() > entries_max) return fail(Errc::limit_reached);
  std::vector<os::DirectoryEntry> entries;
  for (const auto& [name, child] : directory->children) entries.push_back({name, child->kind});
  return entries;
}

Result<os::FileStatus> MemoryFileSystem::path_status(const std::string& path) {
  WEIR_TRY(const auto node, find(path));
  return status_of(*node);
}

Result<> MemoryFileSystem::set_permissions(const std::string& path, unsigned permissions) {
  WEIR_TRY(const auto node, find(path));
  node->permissions = permissions & 0777;
  return {};
}

// --- open files ----------------------------------------------------------------------------------

Result<loop::Descriptor> MemoryFileSystem::open(const std::string& path,
                                                const os::FileOpenOptions& how) {
  if (how.mode != os::FileMode::read) {
    WEIR_TRY(check_alive());
  }
  auto lookup = locate(path);
  if (!lookup) return fail(lookup.error());
  if (platform_.descriptors().full()) return fail(system_error(EMFILE));
  const bool makes = how.mode != os::FileMode::read && how.mode != os::FileMode::read_write;
  if (lookup->node == nullptr) {
    if (!makes) return fail(system_error(ENOENT));
    if (lookup->as_directory) return fail(system_error(EISDIR));
    WEIR_TRY(check_changeable(*lookup->parent));
    lookup->node = make(os::FileKind::file, how.permissions);
    insert(*lookup, lookup->node);
  } else {
    if (how.mode == os::FileMode::create_new) return fail(system_error(EEXIST));
    if (is_directory(*lookup->node)) return fail(system_error(EISDIR));
    unsigned wanted = may_write;
    if (how.mode == os::FileMode::read) wanted = may_read;
    if (how.mode == os::FileMode::read_write) wanted = may_read | may_write;
    WEIR_TRY(check(*lookup->node, wanted));
    if (how.mode == os::FileMode::truncate) {
      lookup->node->bytes.resize(0);
      lookup->node->modified = platform_.wall_time();
    }
  }
  WEIR_TRY(auto number,
           platform_.descriptors().add(std::make_shared<MemoryOpenFile>(lookup->node, how.mode)));
  return loop::Descriptor(platform_, number);
}

Result<MemoryOpenFile*> MemoryFileSystem::file(int descriptor) const {
  MemoryOpenFile* const found = platform_.descriptors().file(descriptor);
  if (found == nullptr) return fail(system_error(EBADF));
  return found;
}

Result<std::size_t> MemoryFileSystem::read_at(int descriptor, MutableBytes target,
                                              std::uint64_t offset) {
  WEIR_TRY(const auto found, file(descriptor));
  if (!found->readable()) return fail(system_error(EBADF));
  if (offset > os::file_offset_max) return fail(system_error(EINVAL));
  if (const auto error = platform_.nondeterminism().file_error()) return fail(error);
  return found->node().bytes.read(target, offset);
}

Result<std::size_t> MemoryFileSystem::write_at(int descriptor, Bytes source, std::uint64_t offset) {
  WEIR_TRY(check_alive());
  WEIR_TRY(const auto found, file(descriptor));
  if (!found->writable()) return fail(system_error(EBADF));
  if (offset > os::file_offset_max) return fail(system_error(EINVAL));
  if (const auto error = platform_.nondeterminism().file_error()) return fail(error);
  MemoryNode& node = found->node();
  auto written = node.bytes.write(source, found->appends() ? node.bytes.size() : offset);
  if (written) node.modified = platform_.wall_time();
  return written;
}

Result<> MemoryFileSystem::resize(int descriptor, std::uint64_t size) {
  if (auto alive = check_alive(); !alive) return alive;
  WEIR_TRY(const auto found, file(descriptor));
  if (!found->writable() || size > os::file_offset_max) return fail(system_error(EINVAL));
  found->node().bytes.resize(size);
  found->node().modified = platform_.wall_time();
  return {};
}

os::FileStatus MemoryFileSystem::status_of(const MemoryNode& node) {
  os::FileStatus status;
  status.kind = node.kind;
  status.size = node.bytes.size();
  status.modified = status.changed = node.modified;
  status.permissions = node.permissions;
  status.inode = node.inode;
  return status;
}

Result<os::FileStatus> MemoryFileSystem::file_status(int descriptor) {
  WEIR_TRY(const auto found, file(descriptor));
  return status_of(found->node());
}

// --- files below a root --------------------------------------------------------------------------

namespace {

/// Joins the path of a root folder and a path below it.
/// Errors: EXDEV for a path that could leave the root.
Result<std::string> path_beneath(const std::string& root, std::string_view path) {
  const std::string whole = root + "/" + std::string(path);
  int depth = 0;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (part == "..") {
      --depth;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
    if (depth < 0) return fail(system_error(EXDEV));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return whole;
}

}  // namespace

Result<loop::FileSystem::FileBeneath> MemoryFileSystem::open_beneath(const std::string& root,
                                                                     const std::string& path,
                                                                     os::BeneathLinks) {
  if (path.starts_with('/')) return fail(system_error(EXDEV));
  WEIR_TRY(const auto whole, path_beneath(root, path));
  WEIR_TRY(find_directory(root));
  WEIR_TRY(const auto node, find(whole));
  if (is_directory(*node)) return FileBeneath{{}, status_of(*node)};
  WEIR_TRY(auto file, open(whole, {}));
  return FileBeneath{std::move(file), status_of(*node)};
}

Result<std::vector<os::DirectoryEntry>> MemoryFileSystem::list_beneath(const std::string& root,
                                                                       const std::string& path,
                                                                       os::BeneathLinks,
                                                                       std::size_t entries_max) {
  if (path.starts_with('/')) return fail(system_error(EXDEV));
  WEIR_TRY(const auto whole, path_beneath(root, path));
  return list(whole, entries_max);
}

Result<std::size_t> MemoryFileSystem::read_cached(int descriptor, MutableBytes target,
                                                  std::uint64_t offset) {
  if (!cached_) return fail(system_error(EAGAIN));
  return read_at(descriptor, target, offset);
}

Result<std::size_t> MemoryFileSystem::send_file(int socket, Bytes before,
                                                const os::FilePart& part) {
  WEIR_TRY(const auto found, file(part.file));
  MemoryStream* const stream = platform_.descriptors().stream(socket);
  if (stream == nullptr) return fail(system_error(EBADF));
  const auto send = [&](Bytes bytes) -> Result<std::size_t> {
    const std::size_t most = platform_.nondeterminism().transfer_size(bytes.size());
    auto count = stream->send(bytes.first(most));
    if (!count && count.error() == system_error(EAGAIN)) return std::size_t{0};
    return count;
  };
  std::size_t sent = 0;
  if (!before.empty()) {
    WEIR_TRY(sent, send(before));
    if (sent < before.size()) return sent;
  }
  std::array<std::byte, 4096> room;
  for (std::size_t done = 0; done < part.size;) {
    const MutableBytes target = std::span(room).first(std::min(room.size(), part.size - done));
    const std::size_t count = found->node().bytes.read(target, part.offset + done);
    if (count == 0) break;
    WEIR_TRY(const auto taken, send(target.first(count)));
    done += taken;
    sent += taken;
    if (taken < count) break;
  }
  return sent;
}

// --- losses of power -----------------------------------------------------------------------------

Result<> MemoryFileSystem::sync(int descriptor) {
  if (auto alive = check_alive(); !alive) return alive;
  WEIR_TRY(const auto found, file(descriptor));
  if (const auto error = platform_.nondeterminism().file_error()) return fail(error);
  MemoryNode& node = found->node();
  node.synced_bytes = node.bytes;
  return {};
}

Result<> MemoryFileSystem::sync_directory(const std::string& path) {
  if (auto alive = check_alive(); !alive) return alive;
  WEIR_TRY(const auto directory, find_directory(path));
  directory->synced_children = directory->children;
  return {};
}

void MemoryFileSystem::restore(MemoryNode& node, std::set<const MemoryNode*>& restored) {
  node.bytes = node.synced_bytes;
  node.children = node.synced_children;
  // A moved directory of which only the new parent was synced is also in the old parent.
  std::erase_if(node.children, [&](const auto& each) {
    return is_directory(*each.second) && !restored.insert(each.second.get()).second;
  });
  for (const auto& [name, child] : node.children) restore(*child, restored);
}

void MemoryFileSystem::lose_power() {
  std::set<const MemoryNode*> restored{root_.get()};
  restore(*root_, restored);
}

}  // namespace weir
