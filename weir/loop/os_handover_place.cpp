#include "weir/loop/os_handover_place.hpp"

#include <cerrno>
#include <chrono>
#include <utility>

#include "weir/loop/os_handover_talk.hpp"
#include "weir/os/local_packets.hpp"

namespace weir {
namespace {

// Who is out of descriptors has to wait like everybody else.
constexpr Duration pause = std::chrono::milliseconds(100);

}  // namespace

OsHandoverPlace::OsHandoverPlace(Host& host, const os::Address& path, os::Fd event)
    : host_(host), path_(path), event_(std::move(event)) {}

Result<std::unique_ptr<HandoverTalk>> OsHandoverPlace::meet() {
  auto met = os::meet_at(path_);
  if (!met) return fail(met.error());
  std::unique_ptr<HandoverTalk> older;
  if (met->listener) {
    listener_ = Descriptor(host_, met->listener.release());
    file_ = met->file;
  } else {
    older_file_ = met->file;
    older = std::make_unique<OsHandoverTalk>(host_, std::move(met->connection), event_.get());
  }
  return older;
}

void OsHandoverPlace::leave() noexcept {
  if (file_) os::remove_local_path(path_, *file_);
  file_.reset();
  listener_.reset();
}

std::unique_ptr<HandoverTalk> OsHandoverPlace::wait_for_newer() {
  if (wait_readable(listener_.value(), event_.get(), never) != Woken::readable) return nullptr;
  auto connection = os::accept_one(listener_.value());
  if (connection) {
    return std::make_unique<OsHandoverTalk>(host_, std::move(*connection), event_.get());
  }
  if (connection.error() != system_error(EAGAIN))
    static_cast<void>(wait(after(host_.now(), pause)));
  return nullptr;
}

bool OsHandoverPlace::wait(Instant until) {
  return wait_readable(-1, event_.get(), until) == Woken::interrupted;
}

void OsHandoverPlace::ring() noexcept {
  os::signal_event(event_.get());
}

}  // namespace weir
