#include "weir/doctor/detail/examination.hpp"

#include <gtest/gtest.h>

namespace weir::doctor::examination_test {
namespace {

struct Case {
  const char* url;
  const char* host;
  int port;
  const char* shown;
};

TEST(DoctorTarget, IsReadFromAUrl) {
  const Case cases[] = {
      {"postgres://user:p@ss@db.example.org/shop", "db.example.org", 5432,
       "postgres://db.example.org:5432"},
      {"postgresql://[2001:db8::1]:6000/shop", "2001:db8::1", 6000,
       "postgresql://[2001:db8::1]:6000"},
      {"redis://cache", "cache", 6379, "redis://cache:6379"},
      {"https://api.example.org?q=1", "api.example.org", 443, "https://api.example.org:443"},
      {"kafka://a:1,b:2", "a", 1, "kafka://a:1"},
      {"tcp://a:1", "a", 1, "tcp://a:1"},
      {"a:1", "a", 1, "a:1"},
      {"unix:/run/a.sock", "unix:/run/a.sock", 0, "unix:/run/a.sock"},
  };
  for (const Case& each : cases) {
    const auto target = parse_target(each.url);
    ASSERT_TRUE(target) << each.url;
    EXPECT_EQ(target->host, each.host);
    EXPECT_EQ(target->port, each.port);
    EXPECT_EQ(target->shown, each.shown);
  }
}

TEST(DoctorTarget, IsRejectedIfItHasNoHostOrPort) {
  for (const char* url : {"", "a", "tcp://a", "ftp://a", "http://", "http://:80", "a:b", "a:99999",
                          "http://[::1]x", "[::1", "unix:"}) {
    EXPECT_FALSE(parse_target(url)) << url;
  }
}

}  // namespace
}  // namespace weir::doctor::examination_test
