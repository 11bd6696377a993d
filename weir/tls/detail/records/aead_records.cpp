#include "weir/tls/detail/records/aead_records.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "weir/loop/contract/detail/platform.hpp"

namespace weir::tls::detail {
namespace {

constexpr std::size_t header_bytes = 5;
constexpr std::size_t message_header_bytes = 4;
constexpr std::size_t explicit_nonce_bytes = 8;                       // TLS 1.2 with AES-GCM
constexpr std::size_t sealed_max_1_3 = RecordLayer::plain_max + 256;  // RFC 8446, 5.2
// OpenSSL's limit. RFC 5246, 6.2.3 allows 2,048 bytes more than the data, for all ciphers.
constexpr std::size_t sealed_max_1_2 = RecordLayer::plain_max + 320;
constexpr std::byte version_major{3};
constexpr std::byte version_minor{3};  // of TLS 1.2. TLS 1.3 has it too: RFC 8446, 5.2.
constexpr std::uint8_t warnings_max = 4;
constexpr std::byte client_hello{1};  // RFC 8446, B.3
constexpr std::byte key_update{24};
constexpr std::byte update_not_requested{0};  // RFC 8446, 4.6.3
constexpr std::byte update_requested{1};

template <std::size_t Count>
void store_big_endian(std::uint64_t number, std::byte* target) {
  for (std::size_t index = 0; index < Count; ++index) {
    target[index] = static_cast<std::byte>(number >> 8 * (Count - 1 - index));
  }
}

template <class Enum>
constexpr std::byte code(Enum value) {
  return static_cast<std::byte>(value);
}

std::size_t length_of(const std::byte* header) {
  return std::to_integer<std::size_t>(header[3]) << 8 | std::to_integer<std::size_t>(header[4]);
}

/// Returns the IV with the sequence number in its last bytes. RFC 8446, 5.3; RFC 7905, 2.
Nonce implicit_nonce(const TrafficKey& key) {
  Nonce nonce = key.iv;
  for (std::size_t index = 0; index < 8; ++index) {
    nonce[4 + index] ^= static_cast<std::uint8_t>(key.sequence >> 8 * (7 - index));
  }
  return nonce;
}

/// Returns the next nonce of AES-GCM in TLS 1.2: the salt and an explicit number. RFC 5288, 3.
Nonce next_explicit_nonce(const TrafficKey& key) {
  Nonce nonce = key.iv;
  std::uint64_t first = 0;
  for (std::size_t index = 4; index < nonce.size(); ++index) first = first << 8 | key.iv[index];
  store_big_endian<8>(first + key.sequence, reinterpret_cast<std::byte*>(nonce.data() + 4));
  return nonce;
}

/// The associated data of TLS 1.2. RFC 5246, 6.2.3.3.
std::array<std::byte, 13> associated_data(std::uint64_t sequence, std::byte type,
                                          std::size_t plain_bytes) {
  std::array<std::byte, 13> data{};
  store_big_endian<8>(sequence, data.data());
  data[8] = type;
  data[9] = version_major;
  data[10] = version_minor;
  store_big_endian<2>(plain_bytes, data.data() + 11);
  return data;
}

/// Appends room for `count` bytes.
std::byte* extend(Buffer& output, std::size_t count) {
  if (output.owns_memory()) {
    output.make_room(count);
  } else {
    output = Buffer::with_capacity(static_cast<std::uint32_t>(count));
  }
  std::byte* const begin = output.room().data();
  output.commit(count);
  return begin;
}

}  // namespace

AeadRecords::AeadRecords(AeadCore& core, const ConnectionKeys& keys) noexcept
    : core_(core),
      read_(keys.read),
      write_(keys.write),
      fragments_(keys.fragments),
      suite_(keys.suite),
      version_(keys.version) {}

AeadRecords::~AeadRecords() {
  core_.forget(read_);
  core_.forget(write_);
}

std::error_code AeadRecords::error() const noexcept {
  return error_ == Error{} ? std::error_code() : make_error_code(error_);
}

// --- whole and incomplete records ----------------------------------------------------------------

RecordLayer::Opened AeadRecords::open(Buffer& input, Buffer& plain, Buffer& output) {
  assert(plain.empty());
  while (state_ == State::open) {
    if (incomplete_ == nullptr) {
      if (input.empty()) return Opened::none;
      if (open_whole(input, plain, output)) return Opened::data;
    } else if (complete_record(input, output)) {
      Buffer record = std::move(*std::exchange(incomplete_, nullptr));
      const MutableBytes data = take_record({record.data(), record.size()}, output);
      if (data.empty()) continue;
      const auto begin = static_cast<std::size_t>(data.data() - record.data());
      plain = std::move(record);
      plain.consume(begin);
      plain.truncate(data.size());
      return Opened::data;
    } else if (state_ == State::open) {
      return Opened::none;
    }
  }
  input.clear();
  incomplete_ = nullptr;
  return state_ == State::closed ? Opened::closed : Opened::failed;
}

/// Opens the whole records of `input` in place, and joins their data. Keeps the incomplete one
/// behind them. Returns true if there is data, which is in `plain` then.
bool AeadRecords::open_whole(Buffer& input, Buffer& plain, Buffer& output) {
  std::byte* const bytes = input.data();
  std::size_t next = 0;   // the next record
  std::size_t begin = 0;  // the data
  std::size_t end = 0;
  while (state_ == State::open && input.size() - next >= header_bytes) {
    if (!check_header(bytes + next, output)) break;
    const std::size_t size = header_bytes + length_of(bytes + next);
    if (input.size() - next < size) break;
    const MutableBytes data = take_record({bytes + next, size}, output);
    next += size;
    if (data.empty()) continue;
    if (begin == end) begin = end = static_cast<std::size_t>(data.data() - bytes);
    std::memmove(bytes + end, data.data(), data.size());
    end += data.size();
  }
  if (state_ == State::open && next < input.size()) {
    keep_incomplete(input.bytes().subspan(next));
  }
  Buffer opened = std::move(input);
  if (begin == end) return false;
  plain = std::move(opened);
  plain.truncate(end);
  plain.consume(begin);
  return true;
}

/// Moves bytes of `input` to the incomplete record. Returns true if it is complete.
bool AeadRecords::complete_record(Buffer& input, Buffer& output) {
  for (;;) {
    const std::size_t size = incomplete_->size();
    const bool has_header = size >= header_bytes;
    const std::size_t wanted =
        has_header ? header_bytes + length_of(incomplete_->data()) : header_bytes;
    if (has_header && size == wanted) return true;
    if (input.empty()) return false;
    const std::size_t count = std::min(wanted - size, input.size());
    keep_incomplete(input.bytes().first(count));
    input.consume(count);
    const bool completes_header = !has_header && size + count == header_bytes;
    if (completes_header && !check_header(incomplete_->data(), output)) return false;
  }
}

/// Appends to the incomplete record. Its memory grows with the bytes that the peer has sent.
void AeadRecords::keep_incomplete(Bytes bytes) {
  constexpr std::size_t least = 256;
  if (incomplete_ == nullptr) incomplete_ = std::make_unique<Buffer>();
  Buffer& kept = *incomplete_;
  const std::size_t size = kept.size() + bytes.size();
  if (kept.capacity() < size) {
    const std::size_t most = header_bytes + (is_1_3() ? sealed_max_1_3 : sealed_max_1_2);
    const std::size_t capacity = std::min(std::bit_ceil(std::max(size, least)), most);
    Buffer larger = Buffer::with_capacity(static_cast<std::uint32_t>(capacity));
    if (!kept.empty()) std::memcpy(larger.room().data(), kept.data(), kept.size());
    larger.commit(kept.size());
    kept = std::move(larger);
  }
  std::memcpy(kept.room().data(), bytes.data(), bytes.size());
  kept.commit(bytes.size());
}

// --- one record ----------------------------------------------------------------------------------

/// Checks the header of a record, once for each record and before its content has arrived. RFC
/// 8446, 5.1 and 5.2. Returns false after a failure.
bool AeadRecords::check_header(const std::byte* header, Buffer& output) {
  // The last one may have data, which resets the number.
  const bool flood = ++records_ > empty_records_max + 1;
  const bool is_version = header[1] == version_major && header[2] == version_minor;
  if (header[1] != version_major || (!is_1_3() && !is_version)) {
    fail(Alert::protocol_version, output);
  } else if (is_1_3() && static_cast<Type>(header[0]) != Type::data) {
    // Also a change_cipher_spec, which is allowed before the end of the handshake only (RFC 8446,
    // D.4).
    fail(Alert::unexpected_message, output);
  } else if (!is_version) {
    fail(Alert::decode_error, output);
  } else if (length_of(header) > (is_1_3() ? sealed_max_1_3 : sealed_max_1_2)) {
    fail(Alert::record_overflow, output);
  }
  if (flood) fail(Error::record_flood);
  return state_ == State::open;
}

/// Opens a record whose header is checked. Returns its data, which lies in its memory.
MutableBytes AeadRecords::take_record(MutableBytes record, Buffer& output) {
  Content content{};
  if (!decrypt(record, content)) {
    fail(Alert::bad_record_mac, output);
    return {};
  }
  const auto reject = [&](Alert alert) {
    fail(alert, output);
    return MutableBytes();
  };
  if (is_1_3()) {
    if (!strip_padding(content)) return reject(Alert::unexpected_message);
    // RFC 8446, 5.1: only data may have no content.
    if (content.bytes.empty() && content.type != Type::data) {
      return reject(Alert::unexpected_message);
    }
  }
  if (content.bytes.size() > fragment_max()) return reject(Alert::record_overflow);
  empty_records_ = content.bytes.empty() ? static_cast<std::uint8_t>(empty_records_ + 1) : 0;
  if (empty_records_ > empty_records_max) return reject(Alert::unexpected_message);
  // RFC 8446, 5.1: no other record lies between those of a message. OpenSSL takes alerts after the
  // header of the message.
  const bool interrupts = is_1_3() && message_size_ != 0 && content.type != Type::handshake;
  if (interrupts && (content.type == Type::data || message_size_ < message_header_bytes)) {
    return reject(Alert::unexpected_message);
  }
  if (content.type != Type::alert && !content.bytes.empty()) warnings_ = 0;
  switch (content.type) {
    case Type::data:
      if (!content.bytes.empty()) records_ = 0;
      return content.bytes;
    case Type::alert:
      take_alert(content.bytes, output);
      return {};
    case Type::handshake:
      take_handshake(content.bytes, output);
      return {};
    case Type::change_cipher_spec:
      break;
  }
  return reject(Alert::unexpected_message);
}

/// Decrypts a record in place. RFC 8446, 5.2; RFC 5246, 6.2.3.3; RFC 5288, 3; RFC 7905, 2.
/// Returns: false if it is not authentic.
bool AeadRecords::decrypt(MutableBytes record, Content& content) {
  if (read_.sequence == std::numeric_limits<std::uint64_t>::max()) return false;
  const MutableBytes header = record.first(header_bytes);
  MutableBytes sealed = record.subspan(header_bytes);
  Nonce nonce = implicit_nonce(read_);
  if (!is_1_3() && suite_ != Suite::chacha20_poly1305) {
    if (sealed.size() < explicit_nonce_bytes) return false;
    nonce = read_.iv;
    std::memcpy(nonce.data() + 4, sealed.data(), explicit_nonce_bytes);
    sealed = sealed.subspan(explicit_nonce_bytes);
  }
  if (sealed.size() < AeadCore::tag_bytes) return false;
  content.type = static_cast<Type>(header[0]);
  content.bytes = sealed.first(sealed.size() - AeadCore::tag_bytes);
  bool authentic = false;
  if (is_1_3()) {
    // At least the type is sealed.
    authentic = !content.bytes.empty() && core_.open(suite_, read_, nonce, header, sealed);
  } else {
    const auto associated = associated_data(read_.sequence, header[0], content.bytes.size());
    authentic = core_.open(suite_, read_, nonce, associated, sealed);
  }
  OPENSSL_cleanse(nonce.data(), nonce.size());  // the first nonce of TLS 1.3 is the IV
  ++read_.sequence;
  return authentic;
}

/// Removes the padding of TLS 1.3, and takes the type before it. RFC 8446, 5.4.
/// Returns: false if there is no known type.
bool AeadRecords::strip_padding(Content& content) noexcept {
  std::size_t size = content.bytes.size();
  while (size > 0 && content.bytes[size - 1] == std::byte{0}) --size;
  if (size == 0) return false;
  content.type = static_cast<Type>(content.bytes[size - 1]);
  content.bytes = content.bytes.first(size - 1);
  return content.type == Type::data || content.type == Type::alert ||
         content.type == Type::handshake;
}

// --- messages of the peer ------------------------------------------------------------------------

/// RFC 8446, 6; RFC 5246, 7.2. The order of the rules is that of OpenSSL.
void AeadRecords::take_alert(Bytes content, Buffer& output) {
  if (content.size() != 2) return fail(Alert::unexpected_message, output);
  const bool warning = static_cast<AlertLevel>(content[0]) == AlertLevel::warning;
  const bool fatal = static_cast<AlertLevel>(content[0]) == AlertLevel::fatal;
  const auto alert = static_cast<Alert>(content[1]);
  const bool canceled = is_1_3() && alert == Alert::user_canceled;
  if ((warning || canceled) && ++warnings_ > warnings_max) {
    return fail(Alert::unexpected_message, output);
  }
  if (canceled) return;
  if (alert == Alert::close_notify && (is_1_3() || warning)) {
    state_ = State::closed;
  } else if (fatal || is_1_3()) {  // RFC 8446, 6: TLS 1.3 has no other warnings
    fail(Error::peer_alert);
  } else if (alert == Alert::no_renegotiation) {
    fail(Alert::handshake_failure, output);
  } else if (!warning) {
    fail(Alert::illegal_parameter, output);
  }
}

/// Takes a part of a message of the handshake protocol. A server of TLS 1.3 accepts KeyUpdate only,
/// and a server of TLS 1.2 accepts none.
void AeadRecords::take_handshake(Bytes content, Buffer& output) {
  if (!is_1_3() && close_sent_) return;
  const std::size_t count = std::min(message_header_bytes - message_size_, content.size());
  std::memcpy(message_.data() + message_size_, content.data(), count);
  message_size_ = static_cast<std::uint8_t>(message_size_ + count);
  if (message_size_ < message_header_bytes) return;
  content = content.subspan(count);
  if (is_1_3()) {
    take_key_update(content, output);
  } else {
    reject_message(output);
  }
}

/// RFC 8446, 4.6.3.
void AeadRecords::take_key_update(Bytes content, Buffer& output) {
  if (message_[0] != key_update) return fail(Alert::unexpected_message, output);
  const bool is_short = message_[1] == std::byte{0} && message_[2] == std::byte{0};
  if (!is_short || message_[3] > std::byte{1}) return fail(Alert::illegal_parameter, output);
  const auto length = std::to_integer<std::size_t>(message_[3]);
  if (content.size() < length) return;  // another record has the rest
  message_size_ = 0;
  if (!count_key_update()) return fail(Error::record_flood);
  // RFC 8446, 5.1: no bytes with the old key follow it.
  if (content.size() > length) return fail(Alert::unexpected_message, output);
  if (length == 0) return fail(Alert::decode_error, output);
  const std::byte request = content[0];
  if (request > update_requested) return fail(Alert::illegal_parameter, output);
  core_.forget(read_);
  update_key(read_, suite_);
  // One answer is enough for all requests before the next data.
  if (request == update_requested) owes_update_ = true;
}

/// Rejects a message of TLS 1.2. RFC 5246, 7.2.2.
void AeadRecords::reject_message(Buffer& output) {
  if (message_[0] != client_hello) return fail(Alert::unexpected_message, output);
  const std::array content{code(AlertLevel::warning), code(Alert::no_renegotiation)};
  seal_record(Type::alert, content, output);
  fail(Error::bad_record);
}

/// Returns true if the peer may update its key now.
bool AeadRecords::count_key_update() noexcept {
  if (core_.clock() == nullptr) return true;
  const auto now =
      std::chrono::floor<std::chrono::seconds>(core_.clock()->now().time_since_epoch());
  const auto seconds = static_cast<std::uint32_t>(now.count());
  if (seconds - update_second_ >= 60) {
    update_second_ = seconds;
    key_updates_ = 0;
  }
  return ++key_updates_ <= key_updates_max;
}

// --- sealing -------------------------------------------------------------------------------------

std::error_code AeadRecords::seal(Bytes plain, Buffer& output) {
  assert(!plain.empty() && plain.size() <= plain_max && !close_sent_);
  if (state_ == State::failed) return error();
  while (!plain.empty()) {
    const Bytes part = plain.first(std::min(plain.size(), fragment_max()));
    plain = plain.subspan(part.size());
    const bool updates = is_1_3() && (owes_update_ || write_.sequence >= records_per_key);
    if ((updates && !update_write_key(output)) || !seal_record(Type::data, part, output)) {
      fail(Error::library_failure);
      return error();
    }
  }
  return {};
}

void AeadRecords::seal_close(Buffer& output) {
  if (state_ == State::failed || close_sent_) return;
  close_sent_ = true;
  seal_record(Type::alert, std::array{code(AlertLevel::warning), code(Alert::close_notify)},
              output);
}

/// Sends a KeyUpdate, and uses the next key from then on. RFC 8446, 4.6.3.
bool AeadRecords::update_write_key(Buffer& output) {
  constexpr std::array message{key_update, std::byte{0}, std::byte{0}, std::byte{1},
                               update_not_requested};
  if (!seal_record(Type::handshake, message, output)) return false;
  owes_update_ = false;
  core_.forget(write_);
  update_key(write_, suite_);
  return true;
}

/// Appends one record. Returns false, and appends nothing, if its sequence number would wrap or
/// OpenSSL has failed.
bool AeadRecords::seal_record(Type type, Bytes plain, Buffer& output) {
  if (write_.sequence == std::numeric_limits<std::uint64_t>::max()) return false;
  const bool has_nonce = !is_1_3() && suite_ != Suite::chacha20_poly1305;
  const std::size_t length = (has_nonce ? explicit_nonce_bytes : 0) + plain.size() +
                             (is_1_3() ? 1 : 0) + AeadCore::tag_bytes;
  std::byte* const record = extend(output, header_bytes + length);
  std::byte* const content = record + header_bytes;
  // TLS 1.3 seals the type behind the content. RFC 8446, 5.2.
  record[0] = code(is_1_3() ? Type::data : type);
  record[1] = version_major;
  record[2] = version_minor;
  store_big_endian<2>(length, record + 3);
  const std::byte type_code = code(type);
  Nonce nonce = has_nonce ? next_explicit_nonce(write_) : implicit_nonce(write_);
  bool sealed = false;
  if (is_1_3()) {
    const std::array<Bytes, 2> parts{plain, Bytes(&type_code, 1)};
    sealed = core_.seal(suite_, write_, nonce, {record, header_bytes}, parts, content);
  } else {
    const std::size_t nonce_bytes = has_nonce ? explicit_nonce_bytes : 0;
    std::memcpy(content, nonce.data() + 4, nonce_bytes);
    sealed =
        core_.seal(suite_, write_, nonce, associated_data(write_.sequence, type_code, plain.size()),
                   {&plain, 1}, content + nonce_bytes);
  }
  OPENSSL_cleanse(nonce.data(), nonce.size());
  ++write_.sequence;
  if (!sealed) output.truncate(output.size() - header_bytes - length);
  return sealed;
}

void AeadRecords::fail(Error error) noexcept {
  state_ = State::failed;
  error_ = error;
}

/// Fails, and tells the peer why. Nothing follows a close_notify.
void AeadRecords::fail(Alert alert, Buffer& output) {
  fail(Error::bad_record);
  const std::array content{code(AlertLevel::fatal), code(alert)};
  if (!close_sent_) seal_record(Type::alert, content, output);
}

}  // namespace weir::tls::detail
