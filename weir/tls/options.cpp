// The memory that the options of a server imply.
#include "weir/tls/options.hpp"

#include <algorithm>
#include <bit>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/memory_sizes.hpp"
#include "weir/tls/detail/records/aead_core.hpp"
#include "weir/tls/detail/records/aead_records.hpp"
#include "weir/tls/detail/session.hpp"
#include "weir/tls/detail/session_cache.hpp"

namespace weir::tls {
namespace {

using detail::AeadCore;
using detail::AeadRecords;
using detail::RecordLayer;
using detail::Session;
using detail::SessionOutput;
using detail::suite_count;
using weir::detail::block;
using weir::detail::product;
using weir::detail::sum;

// The objects of OpenSSL have no size that a program could query. https_memory_test.cpp of the HTTP
// server measures that these values are not too small.
constexpr std::uint64_t context_bytes = 128 * 1024;  // of one identity, with its chain
constexpr std::uint64_t engine_bytes = 64 * 1024;    // of a handshake without certificates
constexpr std::uint64_t cipher_bytes = 2 * 1024;     // a cipher context with its key schedule
// For each byte of a client's certificate. Very many short names cost most: a name has at least 2
// bytes, and OpenSSL needs about 65 bytes for it. A vector of strings has at most twice their size.
constexpr std::uint64_t engine_per_byte = 64;
constexpr std::uint64_t peer_per_byte = 32;
// TlsInfo with names of at most 255 bytes, if no other connection has the same.
constexpr std::uint64_t info_bytes = 1024;
// A record of TLS 1.2 in the form in which it is received.
constexpr std::uint64_t record_bytes = RecordLayer::plain_max + 2048 + 5;
// The contexts in use, those of a reload, and those that check the files of a reload.
constexpr std::uint64_t generations = 3;
constexpr std::uint64_t core_bytes = 64 * 1024;  // streams that linger, and lists

std::uint64_t buffer(std::uint64_t bytes) noexcept {
  return block(std::max<std::uint64_t>(bytes, Buffer::default_capacity));
}

/// Returns the bytes for the first message, whose buffer doubles while the old one still exists,
/// and for the bytes of one read.
std::uint64_t hello_bytes(std::uint64_t input_bytes_max) noexcept {
  const std::uint64_t most = sum({input_bytes_max, Buffer::default_capacity});
  return sum({product(3, buffer(most)), buffer(0)});
}

}  // namespace

ServerMemoryBound memory_bound(const ServerOptions& options) noexcept {
  const std::uint64_t input_max = options.limits.input_bytes_max;
  const bool certified = options.client_certificates != ClientCertificates::none;
  const std::uint64_t identities =
      std::max<std::size_t>(options.identities.size() + options.files.size(), 1);
  ServerMemoryBound bound{};
  const std::uint64_t layer =
      options.records == RecordCode::weir ? block(sizeof(AeadRecords)) : engine_bytes;
  bound.idle_connection = sum({block(sizeof(Session)), layer, info_bytes,
                               certified ? product(peer_per_byte, input_max) : 0});
  // The part, in a buffer that grows while the old one still exists, and the bytes of one read.
  bound.incomplete_record = sum({block(record_bytes), 2 * buffer(0)});
  // A record that is complete, and one that is not while its buffer grows; the bytes of one read;
  // the sealed bytes of a write, the record that joins its pieces, and an alert.
  bound.connection =
      sum({bound.idle_connection, 2 * block(record_bytes), buffer(0), buffer(0),
           block(BlockPool::block_max), 2 * buffer(0), block(sizeof(SessionOutput))});
  bound.first_message = hello_bytes(input_max);
  bound.handshake = sum(
      {engine_bytes, product(2, input_max), certified ? product(engine_per_byte, input_max) : 0});
  bound.core = sum({core_bytes, product(generations * context_bytes, identities), sizeof(AeadCore),
                    AeadCore::memory_bytes_max, 2 * suite_count * cipher_bytes});
  return bound;
}

std::uint64_t kept_sessions_bytes_max(const ClientOptions& options) noexcept {
  return options.tickets ? detail::SessionCache::memory_bytes_max : 0;
}

}  // namespace weir::tls
