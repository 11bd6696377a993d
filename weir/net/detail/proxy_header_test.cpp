#include "weir/net/detail/proxy_header.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::proxy_header_test {
namespace {

using Kind = ProxyHeaderResult::Kind;

/// Returns "source destination size", "malformed", or "missing N".
std::string parse(std::string_view input) {
  const auto result = parse_proxy_header(to_bytes(input));
  if (result.kind == Kind::malformed) return "malformed";
  if (result.kind == Kind::need_more) return "missing " + std::to_string(result.size);
  return result.header.source.to_string() + " " + result.header.destination.to_string() + " " +
         std::to_string(result.size);
}

std::string binary(unsigned command, unsigned family, std::string_view block) {
  std::string out("\r\n\r\n\0\r\nQUIT\n", 12);
  out += static_cast<char>(command);
  out += static_cast<char>(family);
  out += static_cast<char>(block.size() >> 8);
  out += static_cast<char>(block.size() & 0xFF);
  return out.append(block);
}
const std::string ipv4_block("\xC0\x00\x02\x01\x0A\x00\x00\x01\x30\x39\x01\xBB", 12);
const std::string ipv6_block = std::string("\x20\x01\x0D\xB8") + std::string(11, '\0') + "\x01" +
                               std::string(15, '\0') + "\x01" + std::string("\x30\x39\x01\xBB");

TEST(ProxyHeaderTest, TextHasTheAddressesOfTcp) {
  EXPECT_EQ(parse("PROXY TCP4 192.0.2.1 10.0.0.1 12345 443\r\nGET"),
            "192.0.2.1:12345 10.0.0.1:443 41");
  EXPECT_EQ(parse("PROXY TCP6 2001:db8::1 ::1 65535 0\r\n"), "[2001:db8::1]:65535 [::1]:0 36");
}

TEST(ProxyHeaderTest, TextMayHaveNoAddress) {
  EXPECT_EQ(parse("PROXY UNKNOWN\r\n"), "- - 15");
  EXPECT_EQ(parse("PROXY UNKNOWN ffff::1 any text 1 2\r\n"), "- - 36");
}

TEST(ProxyHeaderTest, MalformedTextIsRefused) {
  for (const std::string_view bad : {"GET / HTTP/1.1\r\n",
                                     "PROXX",
                                     "proxy TCP4 1.1.1.1 1.1.1.1 1 1\r\n",
                                     "PROXY  TCP4 1.1.1.1 1.1.1.1 1 1\r\n",
                                     "PROXY TCP4 1.1.1.1 1.1.1.1 1\r\n",
                                     "PROXY TCP4 1.1.1.1 1.1.1.1 1 1 1\r\n",
                                     "PROXY TCP4 1.1.1.1 1.1.1.1 1 65536\r\n",
                                     "PROXY TCP4 1.1.1.1 1.1.1.1 01 1\r\n",
                                     "PROXY TCP4 1.1.1.1 1.1.1.1 -1 1\r\n",
                                     "PROXY TCP4 1.1.1.256 1.1.1.1 1 1\r\n",
                                     "PROXY TCP4 01.1.1.1 1.1.1.1 1 1\r\n",
                                     "PROXY TCP4 ::1 ::1 1 1\r\n",
                                     "PROXY TCP6 1.1.1.1 1.1.1.1 1 1\r\n",
                                     "PROXY TCP6 fe80::1%1 ::1 1 1\r\n",
                                     "PROXY UDP4 1.1.1.1 1.1.1.1 1 1\r\n",
                                     "PROXY UNKNOWNX\r\n",
                                     "PROXY UNKNOWN x\n\r\n",
                                     "PROXY TCP4 1.1.1.1 1.1.1.1 1 1\n",
                                     "PROXY TCP4 1.1.1.1 1.1.1.1 1 1 \r\n",
                                     "PROXY \r\n",
                                     "P ROXY"}) {
    EXPECT_EQ(parse(bad), "malformed") << bad;
  }
  EXPECT_EQ(parse("PROXY UNKNOWN " + std::string(91, 'x') + "\r\n"), "- - 107");
  EXPECT_EQ(parse("PROXY UNKNOWN " + std::string(92, 'x') + "\r\n"), "malformed");
  EXPECT_EQ(parse("PROXY UNKNOWN " + std::string(93, 'x')), "malformed") << "no end in 107 bytes";
}

TEST(ProxyHeaderTest, BinaryHasTheAddressesOfTcp) {
  EXPECT_EQ(parse(binary(0x21, 0x11, ipv4_block) + "GET"), "192.0.2.1:12345 10.0.0.1:443 28");
  EXPECT_EQ(parse(binary(0x21, 0x21, ipv6_block)), "[2001:db8::1]:12345 [::1]:443 52");
  EXPECT_EQ(parse(binary(0x21, 0x11, ipv4_block + std::string("\x04\x00\x01x", 4))),
            "192.0.2.1:12345 10.0.0.1:443 32")
      << "extensions are skipped";
}

TEST(ProxyHeaderTest, BinaryMayHaveNoAddressOfTcp) {
  EXPECT_EQ(parse(binary(0x20, 0x00, "")), "- - 16") << "LOCAL";
  EXPECT_EQ(parse(binary(0x20, 0x11, ipv4_block)), "- - 28") << "LOCAL";
  EXPECT_EQ(parse(binary(0x20, 0x11, "x")), "- - 17") << "LOCAL";
  EXPECT_EQ(parse(binary(0x21, 0x00, "any")), "- - 19") << "UNSPEC";
  EXPECT_EQ(parse(binary(0x21, 0x12, ipv4_block)), "- - 28") << "UDP";
  EXPECT_EQ(parse(binary(0x21, 0x31, std::string(216, 'x'))), "- - 232") << "a Unix socket";
}

TEST(ProxyHeaderTest, MalformedBinaryIsRefused) {
  EXPECT_EQ(parse(binary(0x11, 0x11, ipv4_block)), "malformed") << "version 1";
  EXPECT_EQ(parse(binary(0x31, 0x11, ipv4_block)), "malformed") << "version 3";
  EXPECT_EQ(parse(binary(0x22, 0x11, ipv4_block)), "malformed") << "command 2";
  EXPECT_EQ(parse(binary(0x21, 0x41, ipv4_block)), "malformed") << "family 4";
  EXPECT_EQ(parse(binary(0x21, 0x13, ipv4_block)), "malformed") << "protocol 3";
  EXPECT_EQ(parse(binary(0x21, 0x11, ipv4_block.substr(1))), "malformed") << "too short";
  EXPECT_EQ(parse(binary(0x21, 0x21, ipv4_block)), "malformed") << "too short";
  EXPECT_EQ(parse(binary(0x21, 0x31, std::string(215, 'x'))), "malformed") << "too short";
  EXPECT_EQ(parse(binary(0x21, 0x11, std::string(4081, 'x'))), "malformed") << "too long";
  EXPECT_EQ(parse("\r\n\r\nX"), "malformed");
}

/// Reads `whole` as parse_proxy_header() asks, and returns the number of bytes read.
std::size_t read_as_asked(std::string_view whole) {
  std::size_t size = 0;
  for (;;) {
    const auto result = parse_proxy_header(to_bytes(whole.substr(0, size)));
    if (result.kind != Kind::need_more) return size;
    EXPECT_GT(result.size, 0U);
    size += result.size;
    if (size > whole.size()) return whole.size() + 1;
  }
}

TEST(ProxyHeaderTest, MissingBytesNeverReachBehindTheHeader) {
  for (const std::string& whole :
       {std::string("PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n"), std::string("PROXY UNKNOWN\r\n"),
        std::string("PROXY TCP6 2001:db8::1 ::1 65535 0\r\n"), binary(0x21, 0x11, ipv4_block),
        binary(0x20, 0x00, ""), binary(0x21, 0x21, ipv6_block + "more")}) {
    EXPECT_EQ(read_as_asked(whole), whole.size()) << whole;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_TRUE(parse(whole.substr(0, size)).starts_with("missing")) << whole.substr(0, size);
    }
  }
}

}  // namespace
}  // namespace weir::proxy_header_test
