#include "weir/web/files/detail/site_core.hpp"

#include <algorithm>
#include <optional>

namespace weir::http {

std::shared_ptr<const FileVariant> SentFile::share(
    const std::shared_ptr<SiteCore>& core, const Request& request,
    const std::shared_ptr<const FileVariant>& variant) {
  using Client = detail::ClientSlots::Client;
  const std::uint64_t network = core->sent_slots.client_of(request).group;
  std::shared_ptr<SentFile> file = variant->sent.lock();
  if (file != nullptr) {
    const auto known = std::ranges::find(file->shares_, network, &Share::network);
    if (known != file->shares_.end()) return {(*known)->self.lock(), variant.get()};
  } else {
    file = std::make_shared<SentFile>(core, variant);
  }
  auto own = std::make_shared<Share>(file, network);
  // The share may outlive the connection, whose address another one may have then.
  const Client client{network, own.get()};
  auto slot = file->shares_.empty() ? core->sent_slots.try_acquire(client)
                                    : core->sent_slots.try_claim(client);
  if (!slot) return nullptr;
  file->shares_.push_back(own.get());
  own->self = own;
  own->slot = std::move(*slot);
  variant->sent = file;
  return {std::move(own), variant.get()};
}

void SentFile::leave(Share& share) noexcept {
  std::erase(shares_, &share);
  if (!share.slot || share.slot.is_claim() || shares_.empty()) return;
  share.slot.hand_over(shares_.front()->slot);
}

}  // namespace weir::http
