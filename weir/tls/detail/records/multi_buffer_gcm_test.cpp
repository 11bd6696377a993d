// Tests the AES-GCM of Intel's library. OpenSSL is the judge: both get the same keys and data, and
// must give the same bytes.
#include "weir/tls/detail/records/multi_buffer_gcm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "weir/tls/detail/records/aead_core.hpp"

namespace weir::tls::detail::multi_buffer_gcm_test {
namespace {

constexpr std::size_t record_max = 16'640;  // with padding. RFC 8446, 5.2
constexpr std::size_t tag_bytes = MultiBufferGcm::tag_bytes;

class MultiBufferGcmTest : public testing::TestWithParam<Suite> {
 protected:
  void SetUp() override {
    if (gcm_ == nullptr) GTEST_SKIP() << "the build or the CPU is without the library";
  }

  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::vector<std::byte> random_bytes(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random_());
    return bytes;
  }
  TrafficKey random_key() {
    TrafficKey key;
    for (std::uint8_t& each : key.key) each = static_cast<std::uint8_t>(random_());
    return key;
  }
  Nonce random_nonce() {
    Nonce nonce;
    for (std::uint8_t& each : nonce) each = static_cast<std::uint8_t>(random_());
    return nonce;
  }
  /// Returns the lengths of TLS 1.3 and 1.2.
  std::vector<std::byte> random_associated() { return random_bytes(below(2) == 0 ? 5 : 13); }

  std::vector<std::byte> sealed_by_judge(const TrafficKey& key, const Nonce& nonce,
                                         Bytes associated, Bytes plain) {
    std::vector<std::byte> sealed(plain.size() + tag_bytes);
    EXPECT_TRUE(judge_.seal(GetParam(), key, nonce, associated, {&plain, 1}, sealed.data()));
    judge_.forget(key);
    return sealed;
  }
  std::vector<std::byte> sealed(const TrafficKey& key, const Nonce& nonce, Bytes associated,
                                std::span<const Bytes> parts) {
    std::size_t size = tag_bytes;
    for (const Bytes part : parts) size += part.size();
    std::vector<std::byte> target(size);
    gcm_->seal(GetParam(), key, nonce, associated, parts, target.data());
    return target;
  }

  unsigned seed_ = static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random_{seed_};
  AeadCore judge_{nullptr, AesGcm::openssl};
  std::unique_ptr<MultiBufferGcm> gcm_ = MultiBufferGcm::make();
};
INSTANTIATE_TEST_SUITE_P(Of, MultiBufferGcmTest,
                         testing::Values(Suite::aes_128_gcm, Suite::aes_256_gcm),
                         [](const auto& info) {
                           return info.param == Suite::aes_128_gcm ? "Aes128" : "Aes256";
                         });

TEST_P(MultiBufferGcmTest, SealsTheBytesOfOpenssl) {
  SCOPED_TRACE(testing::Message() << "seed " << seed_);
  for (int round = 0; round < 3000; ++round) {
    const TrafficKey key = random_key();
    const Nonce nonce = random_nonce();
    const auto associated = random_associated();
    const auto plain = random_bytes(below(round % 4 == 0 ? record_max + 1 : 600));
    const Bytes whole = plain;
    const std::size_t first = below(plain.size() + 1);
    const std::size_t second = first + below(plain.size() - first + 1);
    const std::array<Bytes, 3> parts{whole.first(first), whole.subspan(first, second - first),
                                     whole.subspan(second)};
    const auto wanted = sealed_by_judge(key, nonce, associated, plain);
    ASSERT_EQ(sealed(key, nonce, associated, parts), wanted);
    ASSERT_EQ(sealed(key, nonce, associated, {&whole, 1}), wanted) << "with a kept schedule";
    gcm_->forget(key);
  }
}

TEST_P(MultiBufferGcmTest, OpensWhatOpensslHasSealed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed_);
  for (int round = 0; round < 3000; ++round) {
    const TrafficKey key = random_key();
    const Nonce nonce = random_nonce();
    const auto associated = random_associated();
    const auto plain = random_bytes(below(round % 4 == 0 ? record_max + 1 : 600));
    auto record = sealed_by_judge(key, nonce, associated, plain);
    ASSERT_TRUE(gcm_->open(GetParam(), key, nonce, associated, record));
    record.resize(plain.size());
    ASSERT_EQ(record, plain);
    gcm_->forget(key);
  }
}

TEST_P(MultiBufferGcmTest, EachChangedBitIsRejected) {
  const TrafficKey key = random_key();
  const Nonce nonce = random_nonce();
  auto associated = random_associated();
  const auto record = sealed_by_judge(key, nonce, associated, random_bytes(20));
  for (std::size_t bit = 0; bit < 8 * record.size(); ++bit) {
    auto changed = record;
    changed[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_FALSE(gcm_->open(GetParam(), key, nonce, associated, changed)) << bit;
  }
  auto same = record;
  EXPECT_TRUE(gcm_->open(GetParam(), key, nonce, associated, same));
  associated[0] ^= std::byte{1};
  same = record;
  EXPECT_FALSE(gcm_->open(GetParam(), key, nonce, associated, same));
  gcm_->forget(key);
}

TEST_P(MultiBufferGcmTest, MoreKeysThanSchedulesAgree) {
  SCOPED_TRACE(testing::Message() << "seed " << seed_);
  std::deque<TrafficKey> keys;  // which do not move
  for (std::size_t index = 0; index < 3 * MultiBufferGcm::keys_max; ++index) {
    keys.push_back(random_key());
  }
  const auto plain = random_bytes(40);
  for (int round = 0; round < 5000; ++round) {
    TrafficKey& key = keys[below(keys.size())];
    const Nonce nonce = random_nonce();
    const Bytes part = plain;
    ASSERT_EQ(sealed(key, nonce, {}, {&part, 1}), sealed_by_judge(key, nonce, {}, plain));
    if (below(8) == 0) {
      gcm_->forget(key);
      key = random_key();
    }
  }
  for (const TrafficKey& key : keys) gcm_->forget(key);
}

TEST_P(MultiBufferGcmTest, CopyOfAKeyHasAScheduleOfItsOwn) {
  TrafficKey first = random_key();
  const Nonce nonce = random_nonce();
  const auto plain = random_bytes(40);
  const Bytes part = plain;
  sealed(first, nonce, {}, {&part, 1});
  TrafficKey second = first;
  second.key = random_key().key;
  EXPECT_EQ(sealed(second, nonce, {}, {&part, 1}), sealed_by_judge(second, nonce, {}, plain));
  gcm_->forget(first);
  EXPECT_EQ(sealed(second, nonce, {}, {&part, 1}), sealed_by_judge(second, nonce, {}, plain));
  gcm_->forget(second);
}

}  // namespace
}  // namespace weir::tls::detail::multi_buffer_gcm_test
