#include "weir/web/clients/detail/client_slots.hpp"

#include "weir/http/syntax/client_error.hpp"
#include "weir/task/timeout.hpp"
#include "weir/web/clients/detail/client_network.hpp"

namespace weir::http::detail {

ClientSlots::Client ClientSlots::client_of(const Request& request) const {
  return {hash_client_network(request, {}, seed_).low, request.body_source().connection()};
}

Task<Result<ClientSlots::Slot>> ClientSlots::acquire(Client client) {
  auto slot = co_await timeout(limits_.queue_timeout, slots_.acquire(client));
  if (slot) co_return std::move(*slot);
  if (slot.error() == Errc::limit_reached) co_return fail(ClientError::queue_full);
  if (slot.error() == Errc::timed_out) co_return fail(ClientError::queue_timed_out);
  co_return fail(slot.error());
}

}  // namespace weir::http::detail
