// Tests of the list of attacks: each one does what its name says.
#include "weir/http_testing/detail/http_attacks.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::sim::http_attacks_test {
namespace {

using End = HttpAttack::EndAction;

struct Expected {
  std::string_view name;
  std::size_t initial;  ///< size of initial_data
  std::size_t repeated = 0;
  bool is_slow = false;
  std::size_t read_size = 1024;
  End end = End::none;
};

TEST(HttpAttacks, AreAllInTheList) {
  constexpr std::size_t head = 25;        // "GET / HTTP/1.1" with a host
  constexpr std::size_t many = 200 * 32;  // 200 requests for a large response
  const std::vector<Expected> expected = {
      {"sends nothing", 0},
      {"a head by bytes", head + 3, 1, true},
      {"a head by lines", head, 6, true},
      {"a large head without its last line", head + 60 * 1005},
      {"a head without an end", head, 2005},
      {"empty lines", 0, 2, true},
      {"a body by bytes", 56, 1, true},
      {"a body without its last byte", 56 + 59'999},
      {"chunks of one byte", 61, 19, true},
      {"extensions", 61, 50 * 19},
      {"chunks without the last one", 61 + 16 * (0xff0 + 7)},
      {"trailers", 64, 2005},
      {"no body after 100 Continue", 74},
      {"reads nothing", many, many, false, 0},
      {"reads by bytes", many, 0, false, 1},
      {"reads nothing, half-closes", many, 0, false, 0, End::half_close},
      {"half a head, half-closes", head, 0, false, 1024, End::half_close},
      {"half-closes immediately", 0, 0, false, 1024, End::half_close},
      {"resets with responses in flight", many, 0, false, 1024, End::reset},
      {"resets immediately", 0, 0, false, 1024, End::reset},
      {"TLS", 9},
      {"HTTP/2", 24},
      {"PROXY", 34 + head},
  };
  const std::vector<HttpAttack>& all = http_attacks();
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t number = 0; number < all.size(); ++number) {
    const HttpAttack& attack = all[number];
    const Expected& each = expected[number];
    SCOPED_TRACE(each.name);
    EXPECT_EQ(attack.name, each.name);
    EXPECT_EQ(attack.initial_data.size(), each.initial);
    EXPECT_EQ(attack.repeated_data.size(), each.repeated);
    EXPECT_EQ(attack.is_slow, each.is_slow);
    EXPECT_EQ(attack.read_size, each.read_size);
    EXPECT_EQ(attack.end_action, each.end);
  }
  EXPECT_EQ(&http_attacks(), &all) << "the list is made once";
}

TEST(HttpAttacks, HaveTheirBytes) {
  for (const HttpAttack& attack : http_attacks()) {
    SCOPED_TRACE(attack.name);
    if (attack.name == "TLS") {
      EXPECT_EQ(attack.initial_data[0], '\x16');
      EXPECT_EQ(attack.initial_data.back(), '\xfc');
    }
    if (attack.name == "a body without its last byte") {
      EXPECT_NE(attack.initial_data.find("Content-Length: 60000\r\n\r\nb"), std::string::npos);
    }
    if (attack.name == "chunks without the last one") {
      EXPECT_TRUE(attack.initial_data.ends_with("c\r\n"));
      EXPECT_EQ(attack.initial_data.find("\r\n0\r\n"), std::string::npos);
    }
    if (attack.name == "a large head without its last line") {
      EXPECT_EQ(attack.initial_data.find("\r\n\r\n"), std::string::npos);
    }
    if (attack.name == "reads nothing") {
      EXPECT_EQ(attack.initial_data, attack.repeated_data);
      EXPECT_TRUE(attack.initial_data.starts_with("GET /large HTTP/1.1\r\n"));
    }
  }
}

}  // namespace
}  // namespace weir::sim::http_attacks_test
