#include "weir/log/log_service.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <tuple>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/loop/work_unit.hpp"

namespace weir {
namespace {

constexpr std::string_view own_name = "weir.logs";
constexpr std::string_view name_of_others = "(others)";

std::vector<std::unique_ptr<LogSink>> only(std::unique_ptr<LogSink> sink) {
  std::vector<std::unique_ptr<LogSink>> sinks;
  sinks.push_back(std::move(sink));
  return sinks;
}

std::size_t place_for(const Loop& loop, std::size_t places) noexcept {
  // Loops are large and aligned: the lowest bits say nothing.
  return (reinterpret_cast<std::uintptr_t>(&loop) >> 6) * 0x9E3779B97F4A7C15U % places;
}

/// For whom this thread works, as the record's first field, unless it has one of that name anyway.
void add_unit(LogRecordWriter& record, std::string_view bound, std::span<const LogField> fields) {
  const WorkUnit* const unit = Running::unit();
  if (unit == nullptr || has_log_field(bound, unit->kind())) return;
  const auto of_unit = [&](const LogField& each) { return each.key == unit->kind(); };
  if (std::ranges::any_of(fields, of_unit)) return;
  std::array<char, WorkUnit::id_bytes_max> room;
  record.add(LogField(unit->kind(), unit->id(room)));
}

}  // namespace

// --- loggers -------------------------------------------------------------------------------------

void Logger::write(LogLevel level, std::string_view message,
                   std::initializer_list<LogField> fields) const noexcept {
  const std::string_view bound = fields_ == nullptr ? std::string_view() : *fields_;
  channel_->logs->write(*channel_, level, message, bound, fields);
}

Logger Logger::bound(std::initializer_list<LogField> fields) const {
  Logger logger(*channel_);
  if (channel_->logs == nullptr) return logger;
  const std::string_view before = fields_ == nullptr ? std::string_view() : *fields_;
  logger.fields_ = std::make_shared<const std::string>(LogRecordWriter::encoded(before, fields));
  return logger;
}

Logger Logger::with_id(std::string_view key) const {
  if (channel_->logs == nullptr) return *this;
  return with(field(key, channel_->logs->next_id()));
}

// --- names and levels ----------------------------------------------------------------------------

Logs::Logs(Host& host, const LogOptions& options)
    : Logs(host, options, only(host_log_sink(host, options.format))) {}

Logs::Logs(Host& host, const LogOptions& options, std::vector<std::unique_ptr<LogSink>> sinks)
    : host_(host),
      ring_bytes_(static_cast<std::size_t>(options.core_buffer.bytes())),
      level_(options.level),
      levels_(options.levels.begin(), options.levels.end()),
      outside_(&add_ring()),
      places_(std::make_unique<std::array<Place, places_max>>()),
      sinks_(std::move(sinks)) {
  thread_ = host_.make_thread({.name = "weir-logs"}, *this);
  const auto started = thread_->start();
  if (started) return;
  thread_.reset();
  host_.log("weir: no thread for the logs, which are written at the end: " +
            started.error().message());
}

Logs::~Logs() {
  thread_.reset();
  do {
    drain();
  } while (anything());
}

LogLevel Logs::level_of(std::string_view name) const {
  for (;;) {
    const auto set = levels_.find(name);
    if (set != levels_.end()) return set->second;
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos) return level_;
    name = name.substr(0, dot);
  }
}

Logger Logs::logger(std::string_view name) {
  const std::lock_guard lock(names_mutex_);
  auto found = channels_.find(name);
  if (found == channels_.end()) {
    if (channels_.size() >= names_max) name = name_of_others;
    bool added = false;
    std::tie(found, added) = channels_.try_emplace(std::string(name), this, level_of(name));
    if (added) found->second.name = found->first;
  }
  return Logger(found->second);
}

void Logs::update_channels() noexcept {
  for (auto& [name, channel] : channels_) {
    channel.level.store(level_of(name), std::memory_order_relaxed);
  }
}

void Logs::set_levels(const LogOptions& options) {
  const std::lock_guard lock(names_mutex_);
  level_ = options.level;
  levels_.clear();
  levels_.insert(options.levels.begin(), options.levels.end());
  update_channels();
}

void Logs::set_level(std::string_view name, LogLevel level) {
  const std::lock_guard lock(names_mutex_);
  if (name.empty()) {
    level_ = level;
  } else {
    levels_.insert_or_assign(std::string(name), level);
  }
  update_channels();
}

LogLevel Logs::level(std::string_view name) const {
  const std::lock_guard lock(names_mutex_);
  return level_of(name);
}

// --- writing -------------------------------------------------------------------------------------

LogRing& Logs::add_ring() {
  const std::lock_guard lock(rings_mutex_);
  const auto number = static_cast<unsigned>(owned_.size());
  LogRing& ring = *owned_.emplace_back(std::make_unique<LogRing>(ring_bytes_, number));
  ring.next = rings_.load(std::memory_order_relaxed);
  // seq_cst: see wake_writer().
  rings_.store(&ring, std::memory_order_seq_cst);
  return ring;
}

/// The buffer of the loop that this thread is in; nullptr where no more can be had.
LogRing* Logs::ring_of(const Loop& loop) noexcept {
  std::size_t index = place_for(loop, places_max);
  for (std::size_t tried = 0; tried < places_max; ++tried, index = (index + 1) % places_max) {
    Place& place = (*places_)[index];
    // relaxed: only this loop's own thread puts it there, and its ring.
    const Loop* owner = place.loop.load(std::memory_order_relaxed);
    if (owner == nullptr && place.loop.compare_exchange_strong(owner, &loop)) owner = &loop;
    if (owner != &loop) continue;
    LogRing* ring = place.ring.load(std::memory_order_relaxed);
    if (ring != nullptr) return ring;
    try {
      ring = &add_ring();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    place.ring.store(ring, std::memory_order_relaxed);
    return ring;
  }
  return nullptr;
}

void Logs::write(const detail::LogChannel& channel, LogLevel level, std::string_view message,
                 std::string_view bound, std::span<const LogField> fields) noexcept {
  Loop* const loop = Loop::current();
  LogRecordWriter record(host_.wall_time(), level,
                         loop == nullptr ? LogRecord::no_core : loop->core(), channel.name,
                         message);
  add_unit(record, bound, fields);
  record.add_encoded(bound);
  for (const LogField& each : fields) record.add(each);
  const Bytes bytes = record.finish();
  if (LogRing* const ring = loop == nullptr ? nullptr : ring_of(*loop)) {
    if (!ring->push(bytes)) loop->figures().add(*ring);
  } else {
    const std::lock_guard lock(outside_mutex_);
    static_cast<void>(outside_->push(bytes));
  }
  wake_writer();
}

/// The thread says first that it sleeps and looks then; this side pushes first and looks then. All
/// of it is seq_cst, so that one of them sees the other.
void Logs::wake_writer() noexcept {
  if (!idle_.load(std::memory_order_seq_cst)) return;
  if (idle_.exchange(false, std::memory_order_seq_cst)) thread_->wake();
}

std::string Logs::next_id() {
  const Loop* const loop = Loop::current();
  LogRing* ring = loop == nullptr ? nullptr : ring_of(*loop);
  std::unique_lock<std::mutex> lock;
  if (ring == nullptr) {
    lock = std::unique_lock(outside_mutex_);
    ring = outside_;
  }
  return std::to_string(ring->number()) + "-" + std::to_string(ring->count_up());
}

// --- writing out ---------------------------------------------------------------------------------

bool Logs::anything() const noexcept {
  for (LogRing* ring = rings_.load(std::memory_order_seq_cst); ring != nullptr; ring = ring->next) {
    if (!ring->empty()) return true;
  }
  return false;
}

std::optional<Instant> Logs::step() noexcept {
  do {
    idle_.store(false, std::memory_order_seq_cst);
    drain();
    idle_.store(true, std::memory_order_seq_cst);
  } while (anything());
  return never;
}

void Logs::flush() {
  drain();
}

/// What was there when it began: cores that go on logging do not keep it.
void Logs::drain() {
  const std::lock_guard lock(drain_mutex_);
  LogRing* const rings = rings_.load(std::memory_order_acquire);
  for (LogRing* ring = rings; ring != nullptr; ring = ring->next) ring->mark();
  while (LogRing* const ring = first_of(rings)) {
    read_log_record(ring->head, record_);
    pass_on(record_);
    ring->head.clear();
  }
  tell_drops(rings);
  for (const auto& sink : sinks_) {
    try {
      sink->flush();
    } catch (...) {
      failed_.add();
    }
  }
}

/// The buffer whose first record is the oldest; nullptr when all that was marked is written out.
LogRing* Logs::first_of(LogRing* rings) {
  LogRing* first = nullptr;
  for (LogRing* ring = rings; ring != nullptr; ring = ring->next) {
    if (ring->head.empty() && !ring->take(ring->head)) continue;
    if (first == nullptr || log_record_time(ring->head) < log_record_time(first->head)) {
      first = ring;
    }
  }
  return first;
}

void Logs::tell_drops(LogRing* rings) {
  for (LogRing* ring = rings; ring != nullptr; ring = ring->next) {
    const std::uint64_t dropped = ring->dropped().value();
    const std::uint64_t fresh = dropped - ring->drops_told;
    if (fresh == 0) continue;
    ring->drops_told = dropped;
    LogRecord record;
    record.time = host_.wall_time();
    record.level = LogLevel::warning;
    record.logger = own_name;
    record.message = "records dropped: a buffer was full";
    record.fields.emplace_back("dropped", fresh);
    record.fields.emplace_back("buffer", std::uint64_t{ring->number()});
    pass_on(record);
  }
}

void Logs::pass_on(const LogRecord& record) {
  for (const auto& sink : sinks_) {
    std::string why;
    try {
      sink->write(record);
      continue;
    } catch (const std::exception& thrown) {
      why = thrown.what();
    } catch (...) {
      why = "something was thrown";
    }
    failed_.add();
    if (!std::exchange(failure_told_, true)) host_.log("weir: a sink of the logs failed: " + why);
  }
  written_.add();
}

LogReport Logs::report() const {
  LogReport report;
  report.written = written_.value();
  report.failed = failed_.value();
  for (LogRing* ring = rings_.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    report.dropped += ring->dropped().value();
  }
  return report;
}

}  // namespace weir
