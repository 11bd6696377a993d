#include "weir/tls/detail/records/multi_buffer_gcm.hpp"

#if WEIR_IPSEC_MB
#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#endif

namespace weir::tls::detail {

static_assert(sizeof(MultiBufferGcm) + 128 * 1024 <= MultiBufferGcm::memory_bytes_max);

#if WEIR_IPSEC_MB

namespace {

/// The functions for one size of key.
struct Functions {
  aes_gcm_pre_t prepare = nullptr;
  aes_gcm_enc_dec_t seal = nullptr;
  aes_gcm_enc_dec_t open = nullptr;
  aes_gcm_init_t begin = nullptr;
  aes_gcm_enc_dec_update_t update = nullptr;
  aes_gcm_enc_dec_finalize_t finish = nullptr;
};

/// The functions by suite, the best for this CPU. They do not use the manager that names them.
using FunctionTable = std::array<Functions, 2>;
static_assert(std::to_underlying(Suite::aes_128_gcm) == 0 &&
              std::to_underlying(Suite::aes_256_gcm) == 1);

struct ManagerDeleter {
  void operator()(IMB_MGR* manager) const noexcept { free_mb_mgr(manager); }
};

/// Returns nothing if the CPU has no instructions for AES, or the test of the library has failed.
std::optional<FunctionTable> find_functions() {
  const std::unique_ptr<IMB_MGR, ManagerDeleter> manager(alloc_mb_mgr(0));
  if (manager == nullptr) throw std::bad_alloc();
  init_mb_mgr_auto(manager.get(), nullptr);
  constexpr std::uint64_t needed = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
  const IMB_MGR& of = *manager;
  if (imb_get_errno(manager.get()) != 0 || (of.features & needed) != needed) return {};
  return FunctionTable{Functions{of.gcm128_pre, of.gcm128_enc, of.gcm128_dec, of.gcm128_init,
                                 of.gcm128_enc_update, of.gcm128_enc_finalize},
                       Functions{of.gcm256_pre, of.gcm256_enc, of.gcm256_dec, of.gcm256_init,
                                 of.gcm256_enc_update, of.gcm256_enc_finalize}};
}

const std::optional<FunctionTable>& function_table() {
  static const std::optional<FunctionTable> table = find_functions();
  return table;
}

const Functions& functions_of(Suite suite) noexcept {
  return (*function_table())[std::to_underlying(suite)];
}

template <class Byte>
auto* data_of(Byte* bytes) {
  using Target = std::conditional_t<std::is_const_v<Byte>, const std::uint8_t, std::uint8_t>;
  return reinterpret_cast<Target*>(bytes);
}

}  // namespace

std::unique_ptr<MultiBufferGcm> MultiBufferGcm::make() {
  if (!function_table()) return nullptr;
  return std::unique_ptr<MultiBufferGcm>(new MultiBufferGcm);
}

MultiBufferGcm::MultiBufferGcm() {
  static_assert(sizeof(gcm_key_data) <= sizeof(Schedule));
  static_assert(sizeof(gcm_context_data) <= sizeof(RecordState));
  static_assert(keys_max - 1 <= std::numeric_limits<std::uint8_t>::max());
  std::iota(free_.rbegin(), free_.rend(), std::uint8_t{0});
}

MultiBufferGcm::~MultiBufferGcm() {
  for (std::size_t slot = 0; slot < keys_max; ++slot) {
    if (holders_[slot] != nullptr) OPENSSL_cleanse(&schedules_[slot], sizeof(Schedule));
  }
  OPENSSL_cleanse(&state_, sizeof state_);
}

gcm_key_data* MultiBufferGcm::schedule_of(Suite suite, const TrafficKey& key) noexcept {
  if (holders_[key.schedule_slot] != &key) {
    key.schedule_slot = free_slot();
    holders_[key.schedule_slot] = &key;
    functions_of(suite).prepare(key.key.data(),
                                reinterpret_cast<gcm_key_data*>(&schedules_[key.schedule_slot]));
  }
  return reinterpret_cast<gcm_key_data*>(&schedules_[key.schedule_slot]);
}

/// Returns a free slot, or a random one if there is none. Connections often take turns, and the
/// oldest schedule would then be the one that is needed next.
std::uint8_t MultiBufferGcm::free_slot() noexcept {
  if (free_count_ > 0) return free_[--free_count_];
  random_ ^= random_ << 13;  // Marsaglia's xorshift
  random_ ^= random_ >> 17;
  random_ ^= random_ << 5;
  const auto slot = static_cast<std::uint8_t>(random_ % keys_max);
  // The schedule of a shorter key would leave the end of this one.
  OPENSSL_cleanse(&schedules_[slot], sizeof(Schedule));
  return slot;
}

void MultiBufferGcm::seal(Suite suite, const TrafficKey& key, const Nonce& nonce, Bytes associated,
                          std::span<const Bytes> parts, std::byte* target) noexcept {
  // Up to this size, a copy of the parts and one call cost less than a call for each part.
  constexpr std::size_t copied_max = 2048;
  const Functions& functions = functions_of(suite);
  const gcm_key_data* const schedule = schedule_of(suite, key);
  auto* const state = reinterpret_cast<gcm_context_data*>(&state_);
  std::size_t size = 0;
  for (const Bytes part : parts) size += part.size();
  std::byte* const tag = target + size;
  std::byte* next = target;
  if (size <= copied_max) {
    for (const Bytes part : parts) {
      if (!part.empty()) std::memcpy(next, part.data(), part.size());
      next += part.size();
    }
    functions.seal(schedule, state, data_of(target), data_of(target), size, nonce.data(),
                   data_of(associated.data()), associated.size(), data_of(tag), tag_bytes);
    return;
  }
  functions.begin(schedule, state, nonce.data(), data_of(associated.data()), associated.size());
  for (const Bytes part : parts) {
    if (part.empty()) continue;
    functions.update(schedule, state, data_of(next), data_of(part.data()), part.size());
    next += part.size();
  }
  functions.finish(schedule, state, data_of(tag), tag_bytes);
}

bool MultiBufferGcm::open(Suite suite, const TrafficKey& key, const Nonce& nonce, Bytes associated,
                          MutableBytes sealed) noexcept {
  const MutableBytes data = sealed.first(sealed.size() - tag_bytes);
  std::array<std::uint8_t, tag_bytes> tag{};
  functions_of(suite).open(schedule_of(suite, key), reinterpret_cast<gcm_context_data*>(&state_),
                           data_of(data.data()), data_of(data.data()), data.size(), nonce.data(),
                           data_of(associated.data()), associated.size(), tag.data(), tag.size());
  return CRYPTO_memcmp(tag.data(), sealed.data() + data.size(), tag_bytes) == 0;
}

void MultiBufferGcm::forget(const TrafficKey& key) noexcept {
  OPENSSL_cleanse(&state_, sizeof state_);
  if (holders_[key.schedule_slot] != &key) return;
  OPENSSL_cleanse(&schedules_[key.schedule_slot], sizeof(Schedule));
  holders_[key.schedule_slot] = nullptr;
  free_[free_count_++] = key.schedule_slot;
}

#else  // The build is without the library: there is no object.

std::unique_ptr<MultiBufferGcm> MultiBufferGcm::make() {
  return nullptr;
}
MultiBufferGcm::~MultiBufferGcm() = default;
void MultiBufferGcm::seal(Suite, const TrafficKey&, const Nonce&, Bytes, std::span<const Bytes>,
                          std::byte*) noexcept {}
bool MultiBufferGcm::open(Suite, const TrafficKey&, const Nonce&, Bytes, MutableBytes) noexcept {
  return false;
}
void MultiBufferGcm::forget(const TrafficKey&) noexcept {}

#endif

}  // namespace weir::tls::detail
