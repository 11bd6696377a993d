// The parts of a World's state: trace, detector of blocking calls, links, and random decisions of
// hosts.
#include "weir/sim/detail/world_state.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir::sim {

void Trace::note(std::string_view what) {
  if (!on_) return;
  constexpr std::int64_t second = 1'000'000'000;
  constexpr std::size_t digits = 9;
  const std::int64_t passed = (clock_.now() - start_).count();
  const std::string fraction = std::to_string(passed % second);
  text_ += std::to_string(passed / second);
  text_ += '.';
  text_.append(digits - fraction.size(), '0');
  text_ += fraction;
  text_ += ' ';
  text_ += location_;
  text_ += ' ';
  text_ += what;
  text_ += '\n';
}

namespace {

constexpr auto pause = std::chrono::milliseconds(50);

}  // namespace

BlockingCallDetector::~BlockingCallDetector() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopping_cv_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BlockingCallDetector::on_call_begin() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { poll_caller(); });
  ++calls_;
  caller_ = os::ThreadProbe::of_this_thread();
}

void BlockingCallDetector::on_call_end() {
  const std::lock_guard lock(mutex_);
  caller_.reset();
}

void BlockingCallDetector::poll_caller() {
  std::uint64_t seen = 0;
  Duration used{};
  Duration blocked_for{};
  std::unique_lock lock(mutex_);
  while (!stopping_cv_.wait_for(lock, pause, [this] { return stopping_; })) {
    if (!caller_) continue;
    const Duration uses = caller_->cpu_time();
    const bool sleeps = caller_->state() == os::ThreadState::blocked;
    blocked_for = sleeps && seen == calls_ && uses == used ? blocked_for + pause : Duration{};
    seen = calls_;
    used = uses;
    if (blocked_for >= blocked_max_) report();
  }
}

void BlockingCallDetector::report() const {
  std::fprintf(stderr,
               "weir: World: a function in a blocking pool is blocked: all functions share one "
               "thread, so a function cannot wait for another one\nreplay: %s\n",
               replay_.c_str());
  std::abort();
}

Duration Link::delay() {
  const JitterOptions& jitter = state_.jitter;
  if (inside_) return state_.random.between({}, jitter.delay_min);
  const bool slow = state_.random.bernoulli(jitter.slow_segment);
  const Duration most = slow ? jitter.slow_segment_max : jitter.delay_max;
  return extra_delay_ + state_.random.between(jitter.delay_min, most);
}

std::size_t Link::segment(std::size_t most) {
  if (most == 1 || !state_.random.bernoulli(state_.jitter.split)) return most;
  return 1 + state_.random.below(most);
}

std::size_t Links::number_of(const os::Address& address) const {
  const auto found = std::ranges::find(nodes_, address.with_port(0), &Node::own);
  return static_cast<std::size_t>(found - nodes_.begin());
}

MemoryNetwork* Links::network_at(const os::Address& address) {
  const std::size_t number = number_of(address);
  return number == nodes_.size() ? nullptr : nodes_[number].streams;
}

MemoryDatagramNetwork* Links::datagrams_at(const os::Address& address) {
  const std::size_t number = number_of(address);
  return number == nodes_.size() ? nullptr : nodes_[number].datagrams;
}

Link& Links::link(const os::Address& from, const os::Address& to) {
  const std::pair ends(number_of(from), number_of(to));
  assert(std::max(ends.first, ends.second) < nodes_.size());
  auto& link = links_[ends];
  if (link == nullptr) link = std::make_unique<Link>(state_, ends.first == ends.second);
  return *link;
}

namespace {

std::string_view name_of(loop::Operation::Kind kind) noexcept {
  constexpr std::array<std::string_view, 7> names = {
      "receive", "send", "accept", "connect", "file", "receive datagrams", "send datagrams"};
  return names[static_cast<std::size_t>(kind)];
}

std::string text_of(const loop::Operation& operation) {
  std::string text(name_of(operation.kind()));
  if (operation.socket() != nullptr) text += " " + std::to_string(operation.socket()->descriptor);
  return text;
}

}  // namespace

void SeededNondeterminism::on_begin(const loop::Operation& operation, MemoryStream* stream) {
  if (stream == nullptr) return;
  const std::uint64_t number = operations_++;
  const auto fault = state_.faults.at_operation(host_, number, state_.random);
  if (!fault) return;
  if (state_.trace.on()) {
    state_.trace.note(std::string(to_string(*fault)) + " before operation " +
                      std::to_string(number) + ", " + text_of(operation));
  }
  inject(*fault, *stream);
}

Instant SeededNondeterminism::random_stall_end() {
  return after(state_.clock.now(), state_.random.between({}, state_.faults.rates.stall_max));
}

void SeededNondeterminism::inject(Fault fault, MemoryStream& stream) {
  if (stream.connected()) {
    state_.faults.add_injected(stream.local(), stream.peer_address());
  } else {
    state_.faults.count_injected_connect();
  }
  switch (fault) {
    case Fault::reset:
      stream.reset();
      break;
    case Fault::half_close:
      stream.end_receiving();
      break;
    case Fault::stall:
      stream.delay_until(random_stall_end());
      break;
    case Fault::full_buffer:
      stream.fill_until(state_.clock, random_stall_end());
      break;
    case Fault::accept_failure:  // injected elsewhere
    case Fault::allocation:
    case Fault::loss:
    case Fault::doubling:
    case Fault::file_failure:
      break;
  }
}

void SeededNondeterminism::on_finish(const loop::Operation& operation, std::size_t bytes) {
  if (!state_.trace.on()) return;
  std::string text = text_of(operation) + ": " + std::to_string(bytes);
  if (operation.error()) text += ", " + operation.error().message();
  state_.trace.note(text);
}

std::size_t SeededNondeterminism::transfer_size(std::size_t most) {
  if (most <= 1 || !state_.random.bernoulli(state_.jitter.partial)) return most;
  // Half of the transfers are small, because the position of a cut in a head or chunk matters
  // more than its size.
  constexpr std::size_t small = 16;
  const std::size_t range = state_.random.bernoulli(0.5) && most > small ? small : most;
  return 1 + state_.random.below(range);
}

std::error_code SeededNondeterminism::accept_error() {
  const std::error_code reason = state_.faults.at_accept(host_, accepts_++, state_.random);
  if (reason && state_.trace.on()) state_.trace.note("accept fails: " + reason.message());
  return reason;
}

std::error_code SeededNondeterminism::file_error() {
  if (files_exempt_) return {};
  const std::uint64_t number = file_operations_++;
  if (!state_.faults.at_file(host_, number, state_.random)) return {};
  if (state_.trace.on()) {
    state_.trace.note("file failure at file operation " + std::to_string(number));
  }
  return system_error(EIO);
}

std::size_t SeededNondeterminism::datagram_copies() {
  if (isolated_) return 0;
  const std::uint64_t number = datagrams_++;
  const auto fault = state_.faults.at_datagram(host_, number, state_.random);
  if (!fault) return 1;
  if (state_.trace.on()) {
    state_.trace.note(std::string(to_string(*fault)) + " of datagram " + std::to_string(number));
  }
  return *fault == Fault::loss ? 0 : 2;
}

Duration SeededNondeterminism::connect_delay() {
  return 2 * state_.random.between(state_.jitter.delay_min, state_.jitter.delay_max);
}

std::size_t SeededNondeterminism::buffer_bytes(std::size_t usual) {
  const std::size_t least = state_.jitter.buffer_bytes_min;
  if (least == 0) return usual;
  while (usual / 2 >= least && state_.random.bernoulli(0.5)) usual /= 2;
  return usual;
}

}  // namespace weir::sim
