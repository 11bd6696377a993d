// Feeds the bytes of a request's head to a HeadParser in pairs of pieces, for tests of the parser.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h1/parser.hpp"
#include "weir/task/test/sweep_budget.hpp"

namespace weir::http {

/// The result of feeding one head to a parser.
struct HeadOutcome {
  ParseResult::Kind kind = ParseResult::Kind::incomplete;
  ParseError error = ParseError::none;
  std::size_t consumed = 0;
  std::string content;  ///< as describe() shows it, if the head is complete

  bool operator==(const HeadOutcome&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const HeadOutcome& outcome) {
    return out << static_cast<int>(outcome.kind) << " " << name_of(outcome.error) << " "
               << outcome.consumed << " " << outcome.content;
  }
};

inline HeadOutcome incomplete_head() {
  return {};
}
inline HeadOutcome invalid_head(ParseError error) {
  return {ParseResult::Kind::error, error, 0, {}};
}
inline HeadOutcome complete_head(std::string_view text, std::string_view content) {
  return {ParseResult::Kind::complete, ParseError::none, text.size(), std::string(content)};
}

/// Returns the content of a head in one line. It leaves out what is absent or usual.
inline std::string describe(const RequestHead& head) {
  std::string text(head.method_text());
  if (head.method() == Method::other) text += " other";
  if (head.method() != method_of(head.method_text())) text += " wrong";
  text.append(" ").append(head.target()).append(" 1.") += std::to_string(head.version_minor());
  if (head.target_form() == TargetForm::absolute) text += " absolute";
  if (head.target_form() == TargetForm::asterisk) text += " asterisk";
  if (head.target_form() == TargetForm::authority) text += " authority";
  if (head.path() != head.target()) text.append(" path=").append(head.path());
  if (head.path_has_escapes()) text += " escapes";
  if (head.has_query()) text += " ?";
  text.append(head.query());
  if (!head.authority().empty()) text.append(" @").append(head.authority());
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField header = head.header_at(index);
    text.append(" [").append(header.name).append(":").append(header.value).append("]");
  }
  if (head.has_content_length()) text += " length=" + std::to_string(head.content_length());
  if (head.chunked()) text += " chunked";
  if (head.has_body()) text += " body";
  if (!head.keep_alive()) text += " close";
  if (head.expects_continue()) text += " continue";
  if (head.requests_upgrade()) text += " upgrade";
  return text;
}

/// Calls parse() with the first `size` bytes of `text`, for each of `sizes` until the head is
/// complete or invalid. Each call gets a copy of exactly these bytes at another address, so that
/// the address sanitizer detects every overrun.
inline HeadOutcome feed(HeadParser& parser, std::string_view text,
                        const std::vector<std::size_t>& sizes) {
  RequestHead head;
  std::unique_ptr<char[]> before;  // keeps the address of the last copy in use
  for (const std::size_t size : sizes) {
    std::unique_ptr<char[]> bytes(new char[size]);
    if (size > 0) std::memcpy(bytes.get(), text.data(), size);
    const ParseResult result = parser.parse({bytes.get(), size}, head);
    HeadOutcome outcome{result.kind, result.error, result.consumed, {}};
    if (result.kind == ParseResult::Kind::complete) {
      outcome.content = describe(head);
      EXPECT_EQ(head.bytes(), text.substr(0, result.consumed));
      EXPECT_FALSE(parser.started());
    }
    if (result.kind != ParseResult::Kind::incomplete) return outcome;
    EXPECT_EQ(outcome, HeadOutcome());
    before = std::move(bytes);
  }
  return {};
}

/// Returns the ways in which `size` bytes may arrive: in one piece, in two pieces and byte by byte.
/// If the process samples, it has at most 300 pairs of pieces, whose cuts have equal distances; see
/// SweepBudget.
inline std::vector<std::vector<std::size_t>> arrivals_of(std::size_t size) {
  std::vector<std::vector<std::size_t>> all{{size}};
  constexpr std::size_t pairs_max = 300;
  const std::size_t stride = SweepBudget::samples() ? size / pairs_max + 1 : 1;
  for (std::size_t cut = 0; cut < size; cut += stride) all.push_back({cut, size});
  std::vector<std::size_t> single;
  for (std::size_t cut = 1; cut <= size; ++cut) single.push_back(cut);
  if (size > 0) all.push_back(single);
  return all;
}

/// Expects this outcome for every arrival of `text`, with and without a cache of the Host line,
/// also for the second head of a parser.
inline void expect_for_every_arrival(std::string_view text, const HeadOutcome& expected,
                                     const HeadLimits& limits = {}) {
  HostLineCache warm;  // knows the Host line of `text`, if it has a common form
  HeadParser unlimited({}, &warm);
  static_cast<void>(feed(unlimited, text, {text.size()}));
  for (const std::vector<std::size_t>& sizes : arrivals_of(text.size())) {
    HostLineCache cold;
    for (HostLineCache* each : {static_cast<HostLineCache*>(nullptr), &cold, &warm}) {
      HeadParser parser(limits, each);
      for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(feed(parser, text, sizes), expected)
            << text << "\nfirst piece: " << sizes.front() << ", round " << round;
        if (expected.kind != ParseResult::Kind::complete) parser.reset();
        ASSERT_FALSE(parser.started());
      }
    }
  }
  if (expected.kind != ParseResult::Kind::complete) return;
  const std::string followed = std::string(text) + "\r\nGET /next HTTP/1.1\r\nX: y\r\n\r\n";
  HeadParser parser(limits, &warm);
  ASSERT_EQ(feed(parser, followed, {followed.size()}), expected) << text;
}

}  // namespace weir::http
