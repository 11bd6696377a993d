// Tests of the ticket keys of a server: what processes share, and what time changes.
#include "weir/tls/detail/server_tickets.hpp"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <cstring>
#include <string>

namespace weir::tls::detail::server_tickets_test {
namespace {

constexpr Duration period = ServerTickets::period;
constexpr Instant start = Instant() + 5 * period + std::chrono::hours(1);

std::string text_of(const TicketKey& key) {
  std::string text(key.name.begin(), key.name.end());
  text.append(key.mac.begin(), key.mac.end());
  text.append(key.cipher.begin(), key.cipher.end());
  return text;
}

TEST(ServerTickets, KeysMoveOnWithEachPeriod) {
  ServerTickets tickets;
  const auto first = tickets.keys(start);
  ASSERT_TRUE(first->previous && first->next);
  EXPECT_EQ(tickets.keys(start + period - std::chrono::hours(1) - Duration(1)), first);
  const auto second = tickets.keys(start + period);
  EXPECT_EQ(text_of(*second->previous), text_of(first->current));
  EXPECT_EQ(text_of(second->current), text_of(*first->next));
  const auto third = tickets.keys(start + 2 * period);
  EXPECT_EQ(text_of(*third->previous), text_of(second->current));
  EXPECT_NE(text_of(third->current), text_of(first->current));
  EXPECT_NE(text_of(*third->next), text_of(first->current));
  EXPECT_EQ(tickets.keys(start), third) << "keys never go back";
}

TEST(ServerTickets, ProcessesWithOneSecretHaveTheSameKeysInEachPeriod) {
  ServerTickets older;
  ServerTickets newer;
  EXPECT_NE(text_of(older.keys(start)->current), text_of(newer.keys(start)->current));
  newer.receive(older.to_bytes(start));
  // The newer process sleeps in between, as a process without handshakes.
  for (const int periods : {0, 1, 2, 3, 7}) {
    const Instant now = start + periods * period;
    EXPECT_EQ(text_of(newer.keys(now)->current), text_of(older.keys(now)->current)) << periods;
    EXPECT_EQ(text_of(*newer.keys(now)->previous), text_of(*older.keys(now)->previous)) << periods;
  }
  ServerTickets late;
  late.receive(older.to_bytes(start + 9 * period));
  EXPECT_EQ(text_of(*late.keys(start + 9 * period)->previous),
            text_of(*older.keys(start + 9 * period)->previous));
}

TEST(ServerTickets, StateHoldsNothingOfEarlierPeriods) {
  ServerTickets tickets;
  const std::string before = tickets.to_bytes(start);
  const std::string secret = before.substr(8, 32);
  const std::string after = tickets.to_bytes(start + 2 * period);
  EXPECT_EQ(after.size(), before.size());
  EXPECT_EQ(after.find(secret), std::string::npos);
  EXPECT_EQ(after.find(text_of(tickets.keys(start + 2 * period)->current)), std::string::npos);
}

TEST(ServerTickets, KeysFromOutsideStay) {
  ServerTickets tickets;
  const auto outside = TicketKeys::random();
  ASSERT_TRUE(outside);
  tickets.set(*outside);
  EXPECT_EQ(text_of(tickets.keys(start + 3 * period)->current), text_of(outside->current));
  EXPECT_EQ(tickets.to_bytes(start), "") << "the newer process reads them itself";
  tickets.receive(ServerTickets().to_bytes(start));
  EXPECT_EQ(text_of(tickets.keys(start)->current), text_of(outside->current));
}

TEST(ServerTickets, OtherBytesAreIgnored) {
  ServerTickets tickets;
  const auto keys = tickets.keys(start);
  tickets.receive("");
  tickets.receive(std::string(39, 'x'));
  tickets.receive(std::string(121, 'x'));
  EXPECT_EQ(tickets.keys(start), keys);
}

/// Returns HKDF-Expand of OpenSSL (RFC 5869).
std::string expanded(std::string secret, std::string info) {
  EVP_KDF* const algorithm = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  EVP_KDF_CTX* const context = EVP_KDF_CTX_new(algorithm);
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  std::string digest = "SHA256";
  const std::array<OSSL_PARAM, 5> parameters{
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end()};
  std::array<unsigned char, TicketKeys::key_bytes> out{};
  EXPECT_EQ(EVP_KDF_derive(context, out.data(), out.size(), parameters.data()), 1);
  EVP_KDF_CTX_free(context);
  EVP_KDF_free(algorithm);
  return std::string(out.begin(), out.end());
}

TEST(ServerTickets, KeyIsThatOfHkdf) {
  ServerTickets tickets;
  const std::string secret = tickets.to_bytes(start).substr(8, 32);
  EXPECT_EQ(text_of(tickets.keys(start)->current), expanded(secret, "weir ticket key"));
}

TEST(TicketKeys, BytesOfAKeyAreNameMacKeyAndCipherKey) {
  std::string bytes(240, 'c');
  bytes.replace(0, 16, 16, 'n').replace(16, 32, 32, 'm');
  const auto keys = TicketKeys::from_bytes(to_bytes(bytes));
  ASSERT_TRUE(keys && keys->previous && keys->next);
  EXPECT_EQ(text_of(keys->current),
            std::string(16, 'n') + std::string(32, 'm') + std::string(32, 'c'));
  EXPECT_EQ(keys->current.mac.front(), 'm');
  EXPECT_FALSE(TicketKeys::from_bytes(to_bytes(bytes).first(79)));
}

}  // namespace
}  // namespace weir::tls::detail::server_tickets_test
