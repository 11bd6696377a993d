#include "weir/loop/os_handover.hpp"

#include <string>
#include <utility>

namespace weir {

OsHandover::~OsHandover() {
  stop();
  thread_.reset();
  place_.leave();
}

HandoverStart OsHandover::meet(Host& host, const HandoverOptions& options) {
  const std::string cannot = cannot_take_over(options);
  const auto path = os::Address::local(options.path);
  if (!path) return {nullptr, cannot + "a path of 1 to 107 bytes is needed"};
  auto event = os::open_event();
  if (!event) return {nullptr, cannot + event.error().message()};
  std::unique_ptr<OsHandover> handover(new OsHandover(host, options, *path, std::move(*event)));
  std::string failure = handover->conversation_.begin();
  if (!failure.empty()) return {nullptr, std::move(failure)};
  return {std::move(handover), {}};
}

Result<> OsHandover::start(HandoverParty& party) {
  party_ = &party;
  thread_ = host_.make_thread({.name = "weir-restart"}, *this);
  return thread_->start();
}

std::optional<Instant> OsHandover::step() noexcept {
  conversation_.run(*party_);
  return std::nullopt;
}

}  // namespace weir
