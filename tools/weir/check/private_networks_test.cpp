// Tests of the recognition of private networks.
#include "tools/weir/check/private_networks.hpp"

#include <gtest/gtest.h>

namespace weir::check::private_networks_test {
namespace {

TEST(PrivateNetworks, IncludeThisMachineAndPrivateAddresses) {
  for (const char* const near : {"127.0.0.1:80",
                                 "127.255.0.9:80",
                                 "10.1.2.3:80",
                                 "172.16.0.1:80",
                                 "172.31.255.255:80",
                                 "192.168.7.7:80",
                                 "[::1]:80",
                                 "[fd00::1]:80",
                                 "[fc12::1]:80",
                                 "[::ffff:10.0.0.1]:80",
                                 "10.0.0.0:80",
                                 "10.255.255.255:80",
                                 "127.0.0.0:80",
                                 "172.16.0.0:80",
                                 "192.168.0.0:80",
                                 "192.168.255.255:80",
                                 "[fc00::1]:80",
                                 "[fdff::1]:80",
                                 "[::ffff:127.0.0.1]:80",
                                 "[::ffff:192.168.255.255]:80",
                                 "unix:/tmp/x",
                                 "0.0.0.0:80",
                                 "[::]:80"}) {
    EXPECT_TRUE(is_local_or_private(Endpoint::parse(near).value())) << near;
  }
  for (const char* const far :
       {"8.8.8.8:80", "11.0.0.1:80", "172.15.0.1:80", "172.32.0.1:80", "192.169.0.1:80",
        "128.0.0.1:80", "126.255.255.255:80", "9.255.255.255:80", "172.15.255.255:80",
        "192.167.255.255:80", "[fbff::1]:80", "[::2]:80", "[::ffff:172.32.0.0]:80", "192.0.2.1:80",
        "[2001:db8::1]:80", "[fe00::1]:80", "[::ffff:8.8.8.8]:80",
        // Link-local addresses, one of which serves secrets to the machines of a cloud.
        "169.254.169.254:80", "169.254.1.1:80", "[fe80::1]:80", "[febf::1]:80",
        "[::ffff:169.254.169.254]:80"}) {
    EXPECT_FALSE(is_local_or_private(Endpoint::parse(far).value())) << far;
  }
  EXPECT_FALSE(is_local_or_private(Endpoint()));
}

}  // namespace
}  // namespace weir::check::private_networks_test
