// Tests what identities accept, and the certificates that they make.
#include "weir/tls/certificate/identity.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::tls::identity_test {
namespace {

constexpr WallTime start = WallTime(std::chrono::seconds(1'735'689'600));  // 2025-01-01

Identity make(std::vector<std::string> names) {
  SelfSigned options;
  options.names = std::move(names);
  options.not_before = start;
  return Identity::self_signed(options).value();
}

TEST(Identity, SelfSignedHasItsNamesAndDates) {
  const Identity identity = make({"a.example", "*.B.example", "192.0.2.1", "2001:db8::1"});
  const std::vector<std::string> names{"a.example", "*.b.example", "192.0.2.1", "2001:db8::1"};
  EXPECT_EQ(identity.names(), names);
  EXPECT_EQ(identity.not_before(), start);
  EXPECT_EQ(identity.not_after(), start + std::chrono::hours(24 * 90));
}

TEST(Identity, ReadsItsOwnPem) {
  const Identity made = make({"a.example"});
  const auto read = Identity::from_pem(made.chain(), made.key());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->names(), made.names());
}

TEST(Identity, ReadsAChainAndTextAroundIt) {
  const Identity own = make({"a.example"});
  const std::string chain = "text before\n" + own.chain() + "\n" + make({"b.example"}).chain();
  const auto read = Identity::from_pem(chain, own.key());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->names(), own.names()) << "the first certificate is that of this side";
}

TEST(Identity, RejectsTheKeyOfAnotherCertificate) {
  const auto read = Identity::from_pem(make({"a.example"}).chain(), make({"a.example"}).key());
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error() == Error::key_mismatch);
  EXPECT_EQ(read.error().text(), "key_mismatch: the key does not belong to CN=a.example");
}

TEST(Identity, RejectsEachTruncationOfItsPem) {
  const Identity own = make({"a.example"});
  const std::size_t end = own.chain().rfind("-----");
  for (std::size_t size = 0; size < end; size += 7) {
    const auto read = Identity::from_pem(own.chain().substr(0, size), own.key());
    ASSERT_FALSE(read) << size;
    EXPECT_TRUE(read.error() == Error::invalid_certificate) << size;
  }
  const std::size_t key_end = own.key().rfind("-----");
  for (std::size_t size = 0; size < key_end; size += 7) {
    const auto read = Identity::from_pem(own.chain(), own.key().substr(0, size));
    ASSERT_FALSE(read) << size;
    EXPECT_TRUE(read.error() == Error::invalid_key) << size;
  }
}

TEST(Identity, NamesHaveTheirNormalForm) {
  SelfSigned options;
  options.names = {"A.Example.", "*.b.example.", "::FFFF:192.0.2.1", "[2001:DB8::1]"};
  const auto made = Identity::self_signed(options);
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->names(),
            (std::vector<std::string>{"a.example", "*.b.example", "192.0.2.1", "2001:db8::1"}));
}

TEST(Identity, RejectsNamesThatAreNone) {
  for (const std::string name : {"", "a b", "a,DNS:b", "*.*.example", ".example", "example.."}) {
    SelfSigned options;
    options.names = {name};
    const auto made = Identity::self_signed(options);
    ASSERT_FALSE(made) << name;
    EXPECT_TRUE(made.error() == Error::invalid_options) << name;
  }
  SelfSigned options;
  options.names.clear();
  EXPECT_TRUE(Identity::self_signed(options).error() == Error::invalid_options);
}

}  // namespace
}  // namespace weir::tls::identity_test
