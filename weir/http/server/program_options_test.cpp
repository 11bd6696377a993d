// Tests of the command line of a program that serves HTTP.
#include "weir/http/server/program_options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::http::program_options_test {
namespace {

ServeOptions parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "service");
  std::vector<char*> pointers;
  for (std::string& each : arguments) pointers.push_back(each.data());
  const auto options =
      ProgramOptions::from_args(static_cast<int>(pointers.size()), pointers.data());
  return options.serve_options({.body_max = 7});
}

TEST(ProgramOptions, DescribeAServer) {
  const ServeOptions none = parse({});
  EXPECT_EQ(none.endpoint, Endpoint::any(8080));
  EXPECT_EQ(none.tls, nullptr);
  EXPECT_EQ(none.plain_http2, PlainHttp2::off);
  EXPECT_EQ(none.limits.body_max, 7U);
  const ServeOptions http2 = parse({"--http2-plain", "--address", "127.0.0.1", "--port", "81"});
  EXPECT_EQ(http2.endpoint.to_string(), "127.0.0.1:81");
  EXPECT_EQ(http2.plain_http2, PlainHttp2::prior_knowledge);
}

}  // namespace
}  // namespace weir::http::program_options_test
