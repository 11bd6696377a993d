// Queues the records of all cores and writes them to the sinks.
#include "weir/log/log_service.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <new>
#include <tuple>
#include <utility>

#include "weir/log/detail/record.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/loop/loop.hpp"

namespace weir {
namespace {

constexpr std::string_view own_logger_name = "weir.logs";
constexpr std::string_view overflow_logger_name = "(others)";

std::vector<std::unique_ptr<LogSink>> to_vector(std::unique_ptr<LogSink> sink) {
  std::vector<std::unique_ptr<LogSink>> sinks;
  sinks.push_back(std::move(sink));
  return sinks;
}

std::size_t slot_index_for(const Loop& loop, std::size_t slots) noexcept {
  // Loops are large and aligned, so the lowest bits carry no information.
  return (reinterpret_cast<std::uintptr_t>(&loop) >> 6) * 0x9E3779B97F4A7C15U % slots;
}

std::string_view to_hex(std::span<const std::uint8_t> bytes, std::span<char> out) noexcept {
  constexpr std::string_view digits = "0123456789abcdef";
  std::size_t size = 0;
  for (const std::uint8_t each : bytes) {
    out[size++] = digits[each >> 4];
    out[size++] = digits[each & 15];
  }
  return {out.data(), size};
}

/// Adds the id of the request or other work that this thread works for, as the first field, and
/// the ids of its span after it. Bound or given fields of these names take precedence.
void add_trace(LogRecordWriter& record, std::string_view bound_fields,
               std::span<const LogField> fields) {
  const TraceContext* const trace = loop::CurrentActivity::trace();
  if (trace == nullptr) return;
  const auto is_given = [&](std::string_view key) {
    return has_log_field(bound_fields, key) ||
           std::ranges::any_of(fields, [&](const LogField& each) { return each.key == key; });
  };
  if (!is_given(trace->kind())) {
    std::array<char, TraceContext::id_bytes_max> room;
    record.add(LogField(trace->kind(), trace->id(room)));
  }
  const ActiveSpan& span = trace->span();
  if (!span.exists || !(span.sampled || span.remote) || is_given("trace_id")) return;
  std::array<char, 2 * std::tuple_size_v<TraceId>> hex;
  record.add(LogField("trace_id", to_hex(span.trace_id, hex)));
  record.add(LogField("span_id", to_hex(span.span_id, hex)));
}

}  // namespace

// --- loggers -------------------------------------------------------------------------------------

void Logger::write(LogLevel level, std::string_view message,
                   std::initializer_list<LogField> fields) const noexcept {
  const std::string_view bound_fields = fields_ == nullptr ? std::string_view() : *fields_;
  state_->logs->write(*state_, level, message, bound_fields, fields);
}

Logger Logger::with_log_fields(std::initializer_list<LogField> fields) const {
  Logger logger(*state_);
  if (state_->logs == nullptr) return logger;
  const std::string_view before = fields_ == nullptr ? std::string_view() : *fields_;
  logger.fields_ = std::make_shared<const std::string>(LogRecordWriter::encode(before, fields));
  return logger;
}

Logger Logger::with_id(std::string_view key) const {
  if (state_->logs == nullptr) return *this;
  return with(field(key, state_->logs->next_id()));
}

// --- names and levels ----------------------------------------------------------------------------

LogService::LogService(loop::Platform& platform, const LogOptions& options)
    : LogService(platform, options, to_vector(platform_log_sink(platform, options.format))) {}

LogService::LogService(loop::Platform& platform, const LogOptions& options,
                       std::vector<std::unique_ptr<LogSink>> sinks)
    : platform_(platform),
      ring_bytes_(static_cast<std::size_t>(options.core_buffer.bytes())),
      level_(options.level),
      levels_(options.levels.begin(), options.levels.end()),
      shared_ring_(&add_ring()),
      ring_slots_(std::make_unique<std::array<RingSlot, ring_slots_max>>()),
      sinks_(std::move(sinks)) {
  thread_ = platform_.make_thread({.name = "weir-logs"}, *this);
  const auto started = thread_->start();
  if (started) return;
  thread_.reset();
  platform_.log("weir: log thread not started: records are written at shutdown: " +
                started.error().message());
}

LogService::~LogService() {
  thread_.reset();
  do {
    drain();
  } while (has_records());
}

LogLevel LogService::level_of(std::string_view name) const {
  for (;;) {
    const auto set = levels_.find(name);
    if (set != levels_.end()) return set->second;
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos) return level_;
    name = name.substr(0, dot);
  }
}

Logger LogService::logger(std::string_view name) {
  const std::lock_guard lock(names_mutex_);
  auto found = loggers_.find(name);
  if (found == loggers_.end()) {
    if (loggers_.size() >= names_max) name = overflow_logger_name;
    bool added = false;
    std::tie(found, added) = loggers_.try_emplace(std::string(name), this, level_of(name));
    if (added) found->second.name = found->first;
  }
  return Logger(found->second);
}

void LogService::update_levels() noexcept {
  for (auto& [name, state] : loggers_) {
    state.level.store(level_of(name), std::memory_order_relaxed);
  }
}

void LogService::set_levels(const LogOptions& options) {
  const std::lock_guard lock(names_mutex_);
  level_ = options.level;
  levels_.clear();
  levels_.insert(options.levels.begin(), options.levels.end());
  update_levels();
}

void LogService::set_level(std::string_view name, LogLevel level) {
  const std::lock_guard lock(names_mutex_);
  if (name.empty()) {
    level_ = level;
  } else {
    levels_.insert_or_assign(std::string(name), level);
  }
  update_levels();
}

LogLevel LogService::level(std::string_view name) const {
  const std::lock_guard lock(names_mutex_);
  return level_of(name);
}

std::vector<std::pair<std::string, LogLevel>> LogService::levels() const {
  const std::lock_guard lock(names_mutex_);
  std::vector<std::pair<std::string, LogLevel>> all;
  all.reserve(loggers_.size() + 1);
  for (const auto& [name, state] : loggers_) all.emplace_back(name, level_of(name));
  std::ranges::sort(all);
  all.emplace(all.begin(), std::string(), level_);
  return all;
}

// --- writing -------------------------------------------------------------------------------------

LogRing& LogService::add_ring() {
  const std::lock_guard lock(rings_mutex_);
  const auto number = static_cast<unsigned>(owned_rings_.size());
  LogRing& ring = *owned_rings_.emplace_back(std::make_unique<LogRing>(ring_bytes_, number));
  ring.next = rings_.load(std::memory_order_relaxed);
  // seq_cst: see wake_writer().
  rings_.store(&ring, std::memory_order_seq_cst);
  return ring;
}

/// Returns the buffer of `loop`, which runs on this thread; nullptr if no slot or memory is left.
LogRing* LogService::ring_of(const Loop& loop) noexcept {
  std::size_t index = slot_index_for(loop, ring_slots_max);
  for (std::size_t tried = 0; tried < ring_slots_max;
       ++tried, index = (index + 1) % ring_slots_max) {
    RingSlot& offset = (*ring_slots_)[index];
    // relaxed: only this loop's own thread stores the loop and its ring.
    const Loop* owner = offset.loop.load(std::memory_order_relaxed);
    if (owner == nullptr && offset.loop.compare_exchange_strong(owner, &loop)) owner = &loop;
    if (owner != &loop) continue;
    LogRing* ring = offset.ring.load(std::memory_order_relaxed);
    if (ring != nullptr) return ring;
    try {
      ring = &add_ring();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    offset.ring.store(ring, std::memory_order_relaxed);
    return ring;
  }
  return nullptr;
}

void LogService::write(const detail::LoggerState& state, LogLevel level, std::string_view message,
                       std::string_view bound_fields, std::span<const LogField> fields) noexcept {
  Loop* const loop = Loop::current();
  LogRecordWriter record(platform_.wall_time(), level,
                         loop == nullptr ? LogRecord::no_core : loop->core(), state.name, message);
  add_trace(record, bound_fields, fields);
  record.add_encoded(bound_fields);
  for (const LogField& each : fields) record.add(each);
  const Bytes bytes = record.finish();
  if (LogRing* const ring = loop == nullptr ? nullptr : ring_of(*loop)) {
    if (!ring->push(bytes)) loop->metrics().add(*ring);
  } else {
    const std::lock_guard lock(shared_ring_mutex_);
    static_cast<void>(shared_ring_->push(bytes));
  }
  wake_writer();
}

/// The writer thread sets idle_ before it looks for records. A core pushes before it reads idle_.
/// All accesses are seq_cst, so at least one of the two sees the other.
void LogService::wake_writer() noexcept {
  if (!idle_.load(std::memory_order_seq_cst)) return;
  if (idle_.exchange(false, std::memory_order_seq_cst)) thread_->wake();
}

std::string LogService::next_id() {
  const Loop* const loop = Loop::current();
  LogRing* ring = loop == nullptr ? nullptr : ring_of(*loop);
  std::unique_lock<std::mutex> lock;
  if (ring == nullptr) {
    lock = std::unique_lock(shared_ring_mutex_);
    ring = shared_ring_;
  }
  return std::to_string(ring->number()) + "-" + std::to_string(ring->next_sequence());
}

// --- writing out ---------------------------------------------------------------------------------

bool LogService::has_records() const noexcept {
  for (LogRing* ring = rings_.load(std::memory_order_seq_cst); ring != nullptr; ring = ring->next) {
    if (!ring->empty()) return true;
  }
  return false;
}

std::optional<Instant> LogService::step() noexcept {
  do {
    idle_.store(false, std::memory_order_seq_cst);
    drain();
    idle_.store(true, std::memory_order_seq_cst);
  } while (has_records());
  return never;
}

void LogService::flush() {
  drain();
}

/// Writes the records that exist at the start; cores that continue to log do not delay the return.
void LogService::drain() {
  const std::lock_guard lock(drain_mutex_);
  LogRing* const rings = rings_.load(std::memory_order_acquire);
  for (LogRing* ring = rings; ring != nullptr; ring = ring->next) ring->mark();
  while (LogRing* const ring = oldest_ring(rings)) {
    read_log_record(ring->head, record_);
    write_to_sinks(record_);
    ring->head.clear();
  }
  report_drops(rings);
  for (const auto& sink : sinks_) {
    try {
      sink->flush();
    } catch (...) {
      on_sink_failure();
    }
  }
}

/// Returns the ring with the oldest first record; nullptr if all marked records are written.
LogRing* LogService::oldest_ring(LogRing* rings) {
  LogRing* first = nullptr;
  for (LogRing* ring = rings; ring != nullptr; ring = ring->next) {
    if (ring->head.empty() && !ring->pop(ring->head)) continue;
    if (first == nullptr || log_record_time(ring->head) < log_record_time(first->head)) {
      first = ring;
    }
  }
  return first;
}

void LogService::report_drops(LogRing* rings) {
  for (LogRing* ring = rings; ring != nullptr; ring = ring->next) {
    const std::uint64_t dropped = ring->dropped().value();
    const std::uint64_t new_drops = dropped - ring->drops_reported;
    if (new_drops == 0) continue;
    ring->drops_reported = dropped;
    LogRecord record;
    record.time = platform_.wall_time();
    record.level = LogLevel::warning;
    record.logger = own_logger_name;
    record.message = "records dropped: a buffer was full";
    record.fields.emplace_back("dropped", new_drops);
    record.fields.emplace_back("buffer", std::uint64_t{ring->number()});
    write_to_sinks(record);
  }
}

void LogService::write_to_sinks(const LogRecord& record) {
  for (const auto& sink : sinks_) {
    try {
      sink->write(record);
    } catch (...) {
      on_sink_failure();
    }
  }
  written_.add();
}

/// Counts the exception that is being handled, and reports the first one.
void LogService::on_sink_failure() {
  failed_.add();
  if (std::exchange(failure_reported_, true)) return;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    platform_.log("weir: log sink failed: out of memory");
  } catch (const std::exception& thrown) {
    platform_.log("weir: log sink failed: " + std::string(thrown.what()));
  } catch (...) {
    platform_.log("weir: log sink failed: unknown exception");
  }
}

LogReport LogService::report() const {
  LogReport report;
  report.written = written_.value();
  report.failed = failed_.value();
  for (LogRing* ring = rings_.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    report.dropped += ring->dropped().value();
  }
  return report;
}

LogRing::LogRing(std::size_t bytes, unsigned number)
    : size_(std::bit_ceil(std::clamp(bytes, 2 * LogRecord::bytes_max, std::size_t{1} << 30))),
      number_(number),
      bytes_(new std::byte[size_]) {}

void LogRing::copy_in(std::uint64_t at, Bytes bytes) noexcept {
  const std::size_t offset = at & (size_ - 1);
  const std::size_t first = std::min(bytes.size(), size_ - offset);
  std::memcpy(bytes_.get() + offset, bytes.data(), first);
  if (first == bytes.size()) return;
  std::memcpy(bytes_.get(), bytes.data() + first, bytes.size() - first);
}

void LogRing::copy_out(std::uint64_t at, MutableBytes bytes) const noexcept {
  const std::size_t offset = at & (size_ - 1);
  const std::size_t first = std::min(bytes.size(), size_ - offset);
  std::memcpy(bytes.data(), bytes_.get() + offset, first);
  if (first == bytes.size()) return;
  std::memcpy(bytes.data() + first, bytes_.get(), bytes.size() - first);
}

bool LogRing::push(Bytes record) noexcept {
  const std::uint64_t at = write_position_.load(std::memory_order_relaxed);
  if (at + record.size() - read_position_seen_ > size_) {
    // acquire: the consumer has copied the records before this position.
    read_position_seen_ = read_position_.load(std::memory_order_acquire);
    if (at + record.size() - read_position_seen_ > size_) {
      dropped_.add();
      return false;
    }
  }
  copy_in(at, record);
  // seq_cst: the producer reads idle_ after this store; see LogService::wake_writer().
  write_position_.store(at + record.size(), std::memory_order_seq_cst);
  return true;
}

void LogRing::collect(MetricSnapshot& sum) const {
  static constexpr MetricInfo dropped{.name = "weir.log.records.dropped",
                                      .unit = "{record}",
                                      .help = "Log records dropped because the queue was full."};
  sum.add({"log records dropped", dropped_.value(), Metric::Kind::counter, &dropped});
}

bool LogRing::empty() const noexcept {
  return write_position_.load(std::memory_order_seq_cst) ==
         read_position_.load(std::memory_order_relaxed);
}

void LogRing::mark() noexcept {
  read_limit_ = write_position_.load(std::memory_order_acquire);
}

bool LogRing::pop(std::vector<std::byte>& record) {
  const std::uint64_t at = read_position_.load(std::memory_order_relaxed);
  if (at == read_limit_) return false;
  std::array<std::byte, log_size_bytes> beginning;
  copy_out(at, beginning);
  record.resize(log_record_size(beginning));
  copy_out(at, record);
  read_position_.store(at + record.size(), std::memory_order_release);
  return true;
}

}  // namespace weir
