// The table of simulated descriptors.
#include "weir/testing/memory/memory_platform.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace weir {
namespace {

constexpr int first_descriptor = 3;  // after standard input, output and error

}  // namespace

Result<int> MemoryDescriptors::add(std::shared_ptr<MemoryEndpoint> endpoint) {
  if (full()) return fail(system_error(EMFILE));
  ++open_;
  if (!free_.empty()) {
    const int number = free_.top();
    free_.pop();
    endpoints_[static_cast<std::size_t>(number - first_descriptor)] = std::move(endpoint);
    return number;
  }
  endpoints_.push_back(std::move(endpoint));
  return first_descriptor + static_cast<int>(endpoints_.size()) - 1;
}

Result<int> MemoryDescriptors::duplicate(int descriptor) {
  if (find(descriptor) == nullptr) return fail(system_error(EBADF));
  return add(endpoints_[static_cast<std::size_t>(descriptor - first_descriptor)]);
}

std::shared_ptr<MemoryEndpoint> MemoryDescriptors::share(int descriptor) const {
  assert(find(descriptor) != nullptr);
  return endpoints_[static_cast<std::size_t>(descriptor - first_descriptor)];
}

MemoryEndpoint* MemoryDescriptors::find(int descriptor) const noexcept {
  const auto index = static_cast<std::size_t>(descriptor - first_descriptor);
  return descriptor >= first_descriptor && index < endpoints_.size() ? endpoints_[index].get()
                                                                     : nullptr;
}

MemoryStream* MemoryDescriptors::stream(int descriptor) const noexcept {
  MemoryEndpoint* const endpoint = find(descriptor);
  const bool right = endpoint != nullptr && endpoint->kind() == MemoryEndpoint::Kind::stream;
  return right ? static_cast<MemoryStream*>(endpoint) : nullptr;
}

MemoryListener* MemoryDescriptors::listener(int descriptor) const noexcept {
  MemoryEndpoint* const endpoint = find(descriptor);
  const bool right = endpoint != nullptr && endpoint->kind() == MemoryEndpoint::Kind::listener;
  return right ? static_cast<MemoryListener*>(endpoint) : nullptr;
}

MemoryOpenFile* MemoryDescriptors::file(int descriptor) const noexcept {
  MemoryEndpoint* const endpoint = find(descriptor);
  const bool right = endpoint != nullptr && endpoint->kind() == MemoryEndpoint::Kind::file;
  return right ? static_cast<MemoryOpenFile*>(endpoint) : nullptr;
}

MemoryDatagramSocket* MemoryDescriptors::datagrams(int descriptor) const noexcept {
  MemoryEndpoint* const endpoint = find(descriptor);
  const bool right = endpoint != nullptr && endpoint->kind() == MemoryEndpoint::Kind::datagrams;
  return right ? static_cast<MemoryDatagramSocket*>(endpoint) : nullptr;
}

bool MemoryDescriptors::listens() const {
  return std::ranges::any_of(endpoints_, [](const auto& each) {
    return each != nullptr && each->kind() == MemoryEndpoint::Kind::listener;
  });
}

void MemoryDescriptors::close_on_kill() {
  each_stream([](MemoryStream& stream) { stream.close_on_kill(); });
  for (const auto& each : endpoints_) {
    if (each == nullptr) continue;
    if (each->kind() == MemoryEndpoint::Kind::datagrams) {
      static_cast<MemoryDatagramSocket&>(*each).close_on_kill();
    }
    if (each->kind() != MemoryEndpoint::Kind::listener) continue;
    const bool others_have_it = each.use_count() != std::ranges::count(endpoints_, each);
    if (!others_have_it) static_cast<MemoryListener&>(*each).close_on_kill();
  }
}

void MemoryDescriptors::close(int descriptor) noexcept {
  assert(find(descriptor) != nullptr);
  if (find(descriptor) == nullptr) return;
  --open_;
  // The endpoint leaves the table before it is destroyed, because its observers may use the
  // table.
  const auto closed =
      std::move(endpoints_[static_cast<std::size_t>(descriptor - first_descriptor)]);
  free_.push(descriptor);
}

}  // namespace weir
