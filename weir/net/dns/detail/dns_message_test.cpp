#include "weir/net/dns/detail/dns_message.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "weir/net/test/name_server_fixture.hpp"

namespace weir::dns::dns_message_test {
namespace {

constexpr std::size_t question_at = 12;

/// Begins a response to `query`: the header with the given record counts, and the question.
DnsWriter reply(const Query& query, unsigned answers, unsigned flags = 0x8180,
                unsigned authorities = 0) {
  DnsWriter message;
  message.raw(query.bytes().first(2)).word(flags).word(1).word(answers).word(authorities).word(0);
  message.raw(query.bytes().subspan(question_at));
  return message;
}

Result<Response> read(const DnsWriter& message, const Query& query, std::size_t most = 8) {
  EXPECT_TRUE(is_response_to(message.bytes, query));
  return parse_response(message.bytes, query, most);
}

TEST(DnsQuery, HasTheFormatOfTheRfc) {
  const Query query("www.example.org", RecordType::aaaa, 0xabcd);
  DnsWriter expected;
  expected.word(0xabcd).word(0x0100).word(1).word(0).word(0).word(0);
  expected.name("www.example.org").word(28).word(1);
  EXPECT_EQ(to_text(query.bytes()), to_text(expected.bytes));
}

TEST(DnsQuery, LongestNameFits) {
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  ASSERT_EQ(longest.size(), 253U);
  const Query query(longest, RecordType::a, 1);
  EXPECT_EQ(query.name().size(), 255U);
  EXPECT_EQ(query.bytes().size(), 12U + 255U + 4U);
}

TEST(DnsResponse, ResponseToAnotherQueryDoesNotMatch) {
  const Query query("example.org", RecordType::a, 7);
  EXPECT_TRUE(is_response_to(reply(query, 0).bytes, query));
  EXPECT_FALSE(is_response_to(reply(Query("example.org", RecordType::a, 8), 0).bytes, query));
  EXPECT_FALSE(is_response_to(reply(Query("example.net", RecordType::a, 7), 0).bytes, query));
  EXPECT_FALSE(is_response_to(reply(Query("example.org", RecordType::aaaa, 7), 0).bytes, query));
  EXPECT_FALSE(is_response_to(reply(query, 0, 0x0180).bytes, query)) << "it is a query";
  EXPECT_FALSE(is_response_to(reply(query, 0, 0xa180).bytes, query)) << "wrong operation code";
  EXPECT_FALSE(is_response_to({}, query));
  const DnsWriter whole = reply(query, 0);
  for (std::size_t size = 0; size < whole.bytes.size(); ++size) {
    EXPECT_FALSE(is_response_to(Bytes(whole.bytes).first(size), query)) << size;
  }
}

TEST(DnsResponse, HasTheClassOfItsQuery) {
  const Query query("example.org", RecordType::a, 7);
  for (const unsigned other : {0U, 2U, 3U, 255U, 0x0101U}) {
    DnsWriter message;
    message.word(7).word(0x8180).word(1).word(0).word(0).word(0).name("example.org");
    EXPECT_FALSE(is_response_to(message.word(1).word(other).bytes, query)) << other;
  }
}

// Only the first five bits of the flags distinguish a response from other messages.
TEST(DnsResponse, IsRecognizedByItsFirstFlags) {
  const Query query("example.org", RecordType::a, 7);
  for (unsigned bit = 0; bit < 16; ++bit) {
    const unsigned flags = 0x8000U ^ 1U << bit;
    EXPECT_EQ(is_response_to(reply(query, 0, flags).bytes, query), bit < 11) << bit;
  }
  for (const unsigned bit : {4U, 5U, 6U, 7U, 8U, 10U}) {
    DnsWriter message = reply(query, 1, 0x8000U | 1U << bit);
    message.pointer(question_at).record(1, 300, 4).address(ip("192.0.2.2"));
    const auto answer = read(message, query);
    ASSERT_TRUE(answer) << bit;
    EXPECT_EQ(answer->code, ResponseCode::no_error) << bit;
    EXPECT_FALSE(answer->truncated) << bit;
    EXPECT_EQ(answer->addresses, std::vector{ip("192.0.2.2")}) << bit;
  }
}

TEST(DnsResponse, QuestionMayBeInUpperCase) {
  const Query query("example.org", RecordType::a, 7);
  EXPECT_TRUE(is_response_to(reply(Query("eXAMPLE.ORG", RecordType::a, 7), 0).bytes, query));
}

TEST(DnsResponse, QuestionMayBeMissingInAnErrorResponse) {
  const Query query("example.org", RecordType::a, 7);
  for (unsigned code = 0; code < 6; ++code) {
    DnsWriter bare;
    bare.word(7).word(0x8180 | code).word(0).word(0).word(0).word(0);
    EXPECT_EQ(is_response_to(bare.bytes, query), code != 0 && code != 3) << code;
    if (is_response_to(bare.bytes, query)) {
      EXPECT_EQ(read(bare, query)->code, static_cast<ResponseCode>(code));
    }
  }
}

TEST(DnsResponse, ReturnsAddressesInOrderAndTheShortestTtl) {
  const Query query("example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 3);
  message.pointer(question_at).record(1, 300, 4).address(ip("192.0.2.2"));
  message.name("EXAMPLE.org").record(1, 60, 4).address(ip("192.0.2.1"));
  message.name("example.net").record(1, 5, 4).address(ip("192.0.2.9"));
  const auto answer = read(message, query);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->addresses, (std::vector{ip("192.0.2.2"), ip("192.0.2.1")}));
  EXPECT_EQ(answer->lifetime, 60s);
  EXPECT_EQ(read(message, query, 1)->addresses, std::vector{ip("192.0.2.2")});
}

// All records of a name expire together (RFC 2181 §5.2).
TEST(DnsResponse, RecordsBeyondTheLimitStillLimitTheTtl) {
  const Query query("example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 3);
  message.pointer(question_at).record(1, 300, 4).address(ip("192.0.2.2"));
  message.pointer(question_at).record(1, 200, 4).address(ip("192.0.2.3"));
  message.pointer(question_at).record(1, 100, 4).address(ip("192.0.2.4"));
  const auto answer = read(message, query, 2);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->addresses, (std::vector{ip("192.0.2.2"), ip("192.0.2.3")}));
  EXPECT_EQ(answer->lifetime, 100s);
  EXPECT_EQ(read(message, query, 3)->addresses.size(), 3U);
  DnsWriter malformed = reply(query, 2);
  malformed.pointer(question_at).record(1, 300, 4).address(ip("192.0.2.2"));
  malformed.pointer(question_at).record(1, 300, 3).byte(1).byte(2).byte(3);
  EXPECT_EQ(read(malformed, query, 1).error(), Errc::bad_input);
}

TEST(DnsResponse, IgnoresAliasesOfAnotherClassOrOwner) {
  const Query query("www.example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 3);
  message.pointer(question_at).word(5).word(3).number(20).word(15).name("b.example.org");
  message.name("example.org").record(5, 20, 15).name("b.example.org");
  message.name("b.example.org").record(1, 300, 4).address(ip("192.0.2.2"));
  const auto answer = read(message, query);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->addresses.empty());
}

TEST(DnsResponse, FollowsAliasesInAnyOrder) {
  const Query query("www.example.org", RecordType::aaaa, 7);
  DnsWriter message = reply(query, 3);
  message.name("b.example.org").record(28, 300, 16).address(ip("2001:db8::1"));
  message.name("a.example.org").record(5, 20, 15).name("b.example.org");
  message.pointer(question_at).record(5, 30, 4).byte(1).raw(to_bytes("a")).pointer(16);
  const auto answer = read(message, query);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->addresses, std::vector{ip("2001:db8::1")});
  EXPECT_EQ(answer->lifetime, 20s);
}

TEST(DnsResponse, ShortestTtlOfAChainOfAliasesCounts) {
  const Query query("a", RecordType::a, 7);
  for (const auto& [first, second, address] :
       {std::tuple(20U, 30U, 40U), std::tuple(30U, 20U, 40U), std::tuple(40U, 30U, 20U)}) {
    DnsWriter message = reply(query, 3);
    message.name("a").record(5, first, 3).name("b");
    message.name("b").record(5, second, 3).name("c");
    message.name("c").record(1, address, 4).address(ip("192.0.2.2"));
    EXPECT_EQ(read(message, query)->lifetime, 20s) << first;
  }
}

TEST(DnsResponse, AliasCycleIsMalformed) {
  const Query query("a.example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 2);
  message.pointer(question_at).record(5, 20, 15).name("b.example.org");
  message.name("b.example.org").record(5, 20, 15).name("a.example.org");
  EXPECT_EQ(read(message, query).error(), Errc::bad_input);
}

TEST(DnsResponse, DanglingAliasHasNoAddress) {
  const Query query("www.example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 1);
  message.pointer(question_at).record(5, 20, 15).name("b.example.org");
  const auto answer = read(message, query);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->addresses.empty());
  EXPECT_EQ(answer->lifetime, std::nullopt);
}

DnsWriter& soa(DnsWriter& message, std::uint32_t ttl, std::uint32_t minimum) {
  message.name("org").record(6, ttl, 22).byte(0).byte(0);
  return message.number(1).number(1).number(1).number(1).number(minimum);
}

TEST(DnsResponse, NegativeTtlComesFromTheSoaRecord) {
  const Query query("www.example.org", RecordType::a, 7);
  DnsWriter minimum = reply(query, 0, 0x8183, 1);
  DnsWriter record = reply(query, 0, 0x8180, 1);
  EXPECT_EQ(read(soa(minimum, 3600, 30), query)->lifetime, 30s);
  EXPECT_EQ(read(minimum, query)->code, ResponseCode::no_such_name);
  EXPECT_EQ(read(soa(record, 40, 60), query)->lifetime, 40s);
  EXPECT_EQ(read(record, query)->code, ResponseCode::no_error);
  record.bytes.pop_back();
  EXPECT_EQ(read(record, query)->lifetime, std::nullopt) << "the truncated record is ignored";
}

TEST(DnsResponse, TtlBeyond31BitsIsZero) {
  const Query query("example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 1);
  message.pointer(question_at).record(1, 0x8000'0000U, 4).address(ip("192.0.2.2"));
  EXPECT_EQ(read(message, query)->lifetime, 0s);
}

TEST(DnsResponse, TruncatedResponseHasNoAddresses) {
  const Query query("example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 9, 0x8380);
  const auto answer = read(message, query);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->truncated && answer->addresses.empty());
}

// The message is truncated at every byte, and has pointers that lead outside or forwards.
TEST(DnsResponse, RejectsMalformedMessages) {
  const Query query("example.org", RecordType::a, 7);
  DnsWriter whole = reply(query, 1);
  const std::size_t answer_at = whole.bytes.size();
  whole.name("example.org").record(1, 60, 4).address(ip("192.0.2.2"));
  ASSERT_TRUE(read(whole, query));
  for (std::size_t size = answer_at; size < whole.bytes.size(); ++size) {
    DnsWriter cut;
    cut.raw(Bytes(whole.bytes).first(size));
    EXPECT_EQ(read(cut, query).error(), Errc::bad_input) << size;
  }
  for (const std::size_t target : {answer_at, answer_at + 1, std::size_t{16383}}) {
    DnsWriter message = reply(query, 1);
    message.pointer(target).record(1, 60, 4).address(ip("192.0.2.2"));
    EXPECT_EQ(read(message, query).error(), Errc::bad_input) << target;
  }
  for (const std::size_t bytes : {0U, 3U, 5U, 16U}) {
    DnsWriter message = reply(query, 1);
    message.pointer(question_at).record(1, 60, bytes);
    for (std::size_t each = 0; each < bytes; ++each) message.byte(1);
    EXPECT_EQ(read(message, query).error(), Errc::bad_input) << bytes;
  }
}

TEST(DnsResponse, NameOfMoreThan255BytesIsMalformed) {
  const Query query("example.org", RecordType::a, 7);
  const std::string label(63, 'x');
  DnsWriter message = reply(query, 1);
  message.name(label + "." + label + "." + label + "." + label).record(1, 60, 4);
  message.address(ip("192.0.2.2"));
  EXPECT_EQ(read(message, query).error(), Errc::bad_input);
}

TEST(DnsResponse, LabelsOfAnUnknownTypeAreMalformed) {
  const Query query("example.org", RecordType::a, 7);
  for (const unsigned kind : {0x40U, 0x80U}) {
    DnsWriter message = reply(query, 1);
    message.byte(kind | 1).byte('a').byte(0).record(1, 60, 4).address(ip("192.0.2.2"));
    EXPECT_EQ(read(message, query).error(), Errc::bad_input) << kind;
  }
}

TEST(DnsResponse, IgnoresRecordsOfAnotherClass) {
  const Query query("example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 1);
  message.pointer(question_at).word(1).word(3).number(60).word(4).address(ip("192.0.2.2"));
  EXPECT_TRUE(read(message, query)->addresses.empty());
}

// A name of 255 bytes has labels of 63, 63, 63 and 61 bytes, their lengths and the root.
TEST(DnsResponse, AcceptsTheLongestNameAndLabel) {
  const std::string label(63, 'x');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'y');
  const Query query(longest, RecordType::a, 7);
  DnsWriter message = reply(query, 1);
  message.name(longest).record(1, 60, 4).address(ip("192.0.2.2"));
  EXPECT_EQ(read(message, query)->addresses, std::vector{ip("192.0.2.2")});
  DnsWriter longer = reply(query, 1);
  longer.name(longest + "y").record(1, 60, 4).address(ip("192.0.2.2"));
  EXPECT_EQ(read(longer, query).error(), Errc::bad_input) << "256 bytes";
}

TEST(DnsResponse, ComparesLettersWithoutCaseAndOtherBytesExactly) {
  const std::string all = "abcdefghijklmnopqrstuvwxyz-0123456789_";
  const Query query(all, RecordType::a, 7);
  DnsWriter message = reply(query, 1);
  message.name("ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789_").record(1, 60, 4);
  message.address(ip("192.0.2.2"));
  EXPECT_EQ(read(message, query)->addresses, std::vector{ip("192.0.2.2")});
  for (const auto& [asked, answered] : {std::pair("a_b", "a?b"),
                                        std::pair("a_b",
                                                  "a\x7f"
                                                  "b"),
                                        std::pair("a-b",
                                                  "a\x0d"
                                                  "b"),
                                        std::pair("azb",
                                                  "a\x9a"
                                                  "b")}) {
    const Query other(asked, RecordType::a, 7);
    DnsWriter wrong;
    wrong.word(7).word(0x8180).word(1).word(0).word(0).word(0).name(answered).word(1).word(1);
    EXPECT_FALSE(is_response_to(wrong.bytes, other)) << asked;
  }
}

TEST(DnsResponse, RejectsASecondQuestion) {
  const Query query("example.org", RecordType::a, 7);
  DnsWriter message;
  message.word(7).word(0x8180).word(2).word(0).word(0).word(0);
  for (int each = 0; each < 2; ++each) message.raw(query.bytes().subspan(question_at));
  EXPECT_FALSE(is_response_to(message.bytes, query));
}

// Each message ends within the pointer of a name, or the pointers lead in a circle.
TEST(DnsResponse, RejectsMalformedPointers) {
  const Query query("example.org", RecordType::a, 7);
  DnsWriter cut = reply(query, 1);
  cut.byte(0xc0);
  EXPECT_EQ(read(cut, query).error(), Errc::bad_input);
  DnsWriter circle = reply(query, 2);
  circle.byte(0).record(16, 60, 4);
  const std::size_t first = circle.bytes.size();
  circle.pointer(first + 2).pointer(first);
  circle.pointer(first + 2).record(1, 60, 4).address(ip("192.0.2.2"));
  EXPECT_EQ(read(circle, query).error(), Errc::bad_input);
  DnsWriter labels = reply(query, 2);
  labels.byte(0).record(16, 60, 4);
  labels.byte(1).byte('a').pointer(labels.bytes.size() - 2);
  labels.pointer(labels.bytes.size() - 4).record(1, 60, 4).address(ip("192.0.2.2"));
  EXPECT_EQ(read(labels, query).error(), Errc::bad_input);
}

TEST(DnsResponse, LabelOfAnUnknownTypeIsNoLongLabel) {
  const Query query("example.org", RecordType::a, 7);
  for (const unsigned length : {64U, 65U, 100U, 191U}) {
    DnsWriter message = reply(query, 1);
    message.byte(length).raw(to_bytes(std::string(length, 'x'))).byte(0);
    message.record(1, 60, 4).address(ip("192.0.2.2"));
    EXPECT_EQ(read(message, query).error(), Errc::bad_input) << length;
  }
}

/// Returns a response to a query for c0 with a chain of `aliases` aliases to an address.
DnsWriter chain(const Query& query, unsigned aliases) {
  DnsWriter message = reply(query, aliases + 1);
  for (unsigned each = 0; each < aliases; ++each) {
    const std::string target = "c" + std::to_string(each + 1);
    message.name("c" + std::to_string(each)).record(5, 60, target.size() + 2).name(target);
  }
  message.name("c" + std::to_string(aliases)).record(1, 60, 4).address(ip("192.0.2.2"));
  return message;
}

TEST(DnsResponse, FollowsAtMostSixteenAliases) {
  const Query query("c0", RecordType::a, 7);
  EXPECT_EQ(read(chain(query, 16), query)->addresses, std::vector{ip("192.0.2.2")});
  EXPECT_EQ(read(chain(query, 17), query).error(), Errc::bad_input);
}

TEST(DnsResponse, NameWithAnAddressNeedsNoAlias) {
  const Query query("a.example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 3);
  message.pointer(question_at).record(1, 60, 4).address(ip("192.0.2.1"));
  message.pointer(question_at).record(5, 20, 15).name("b.example.org");
  message.name("b.example.org").record(1, 60, 4).address(ip("192.0.2.2"));
  const auto answer = read(message, query);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->addresses, std::vector{ip("192.0.2.1")});
  EXPECT_EQ(answer->lifetime, 60s);
}

TEST(DnsResponse, RejectsAnAliasThatDoesNotFillItsRecord) {
  const Query query("a.example.org", RecordType::a, 7);
  DnsWriter longer = reply(query, 1);
  longer.pointer(question_at).record(5, 20, 16).name("b.example.org").byte(0);
  EXPECT_EQ(read(longer, query).error(), Errc::bad_input);
  DnsWriter shorter = reply(query, 1);
  shorter.pointer(question_at).record(5, 20, 14).name("b.example.org");
  EXPECT_EQ(read(shorter, query).error(), Errc::bad_input);
  DnsWriter forwards = reply(query, 1);
  forwards.pointer(question_at).record(5, 20, 2).pointer(forwards.bytes.size() + 2).byte(0);
  EXPECT_EQ(read(forwards, query).error(), Errc::bad_input);
}

TEST(DnsResponse, AbsentNameHasNoAddresses) {
  const Query query("example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 1, 0x8183);
  message.pointer(question_at).record(1, 300, 4).address(ip("192.0.2.2"));
  const auto answer = read(message, query);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, ResponseCode::no_such_name);
  EXPECT_TRUE(answer->addresses.empty());
  EXPECT_EQ(answer->lifetime, std::nullopt);
}

// The rest of such a response is not even parsed.
TEST(DnsResponse, ErrorResponseHasNoAddresses) {
  const Query query("example.org", RecordType::a, 7);
  for (const unsigned code : {1U, 2U, 4U, 5U, 6U}) {
    const auto cut = read(reply(query, 1, 0x8180 | code), query);
    ASSERT_TRUE(cut) << code;
    EXPECT_EQ(cut->code, static_cast<ResponseCode>(code));
    DnsWriter message = reply(query, 1, 0x8180 | code);
    message.pointer(question_at).record(1, 300, 4).address(ip("192.0.2.2"));
    EXPECT_TRUE(read(message, query)->addresses.empty()) << code;
  }
}

TEST(DnsResponse, AbsenceBehindAnAliasHasOnlyTheTtlOfTheSoaRecord) {
  const Query query("www.example.org", RecordType::a, 7);
  for (const unsigned code : {0U, 3U}) {
    DnsWriter message = reply(query, 1, 0x8180 | code, 1);
    message.pointer(question_at).record(5, 20, 15).name("b.example.org");
    const auto answer = read(soa(message, 3600, 30), query);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->code, static_cast<ResponseCode>(code));
    EXPECT_TRUE(answer->addresses.empty());
    EXPECT_EQ(answer->lifetime, 30s);
  }
}

TEST(DnsResponse, NegativeTtlIgnoresOtherRecords) {
  const Query query("www.example.org", RecordType::a, 7);
  DnsWriter second = reply(query, 0, 0x8183, 3);
  second.name("org").record(2, 5, 4).name("ns");
  second.name("org").word(6).word(3).number(5).word(22).byte(0).byte(0);
  for (const unsigned each : {1U, 1U, 1U, 1U, 5U}) second.number(each);
  EXPECT_EQ(read(soa(second, 3600, 30), query)->lifetime, 30s);
  DnsWriter additional = reply(query, 0, 0x8183, 1);
  additional.name("org").record(2, 5, 4).name("ns");
  EXPECT_EQ(read(soa(additional, 3600, 30), query)->lifetime, std::nullopt)
      << "the record is not in the authority section";
}

TEST(DnsResponse, NegativeTtlNeedsAWellFormedSoaRecord) {
  const Query query("www.example.org", RecordType::a, 7);
  DnsWriter longer = reply(query, 0, 0x8183, 1);
  longer.name("org").record(6, 60, 23).byte(0).byte(0);
  for (int each = 0; each < 5; ++each) longer.number(30);
  EXPECT_EQ(read(longer.byte(0), query)->lifetime, std::nullopt);
  DnsWriter shorter = reply(query, 0, 0x8183, 1);
  shorter.name("org").record(6, 60, 18).byte(0).byte(0);
  for (int each = 0; each < 4; ++each) shorter.number(30);
  EXPECT_EQ(read(shorter, query)->lifetime, std::nullopt);
}

TEST(DnsResponse, LongestTtlHas31Bits) {
  const Query query("example.org", RecordType::a, 7);
  DnsWriter message = reply(query, 1);
  message.pointer(question_at).record(1, 0x7fff'ffffU, 4).address(ip("192.0.2.2"));
  EXPECT_EQ(read(message, query)->lifetime, std::chrono::seconds(0x7fff'ffff));
}

// Each pointer leads to the one before it, so that a name costs as many steps as there are
// pointers.
TEST(DnsResponse, BoundsThePointersOfAName) {
  const Query query("example.org", RecordType::a, 7);
  for (const unsigned pointers : {100U, 1000U}) {
    DnsWriter message = reply(query, 2);
    message.pointer(question_at).word(99).word(1).number(20).word(2 * pointers);
    unsigned target = question_at;
    for (unsigned each = 0; each < pointers; ++each) {
      const auto at = static_cast<unsigned>(message.bytes.size());
      message.pointer(target);
      target = at;
    }
    message.pointer(target).record(1, 300, 4).address(ip("192.0.2.2"));
    const auto response = read(message, query);
    EXPECT_EQ(response.has_value(), pointers < 128) << pointers;
  }
}

}  // namespace
}  // namespace weir::dns::dns_message_test
