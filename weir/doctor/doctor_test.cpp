// Tests of the doctor with invented machines below a folder, and with real sockets on loopback.
#include "weir/doctor/doctor.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "weir/base/text/detail/printable.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::doctor::doctor_test {
namespace {

using std::chrono::hours;

/// A machine below a folder, without a fault.
class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    tree_.write("proc/self/status", "Name:\tweir\n");
    tree_.write("proc/thread-self/status", "CapEff:\t0000000000000000\nSeccomp:\t0\n");
    tree_.write("proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units\n"
                "Max processes             96365                96365                processes\n"
                "Max open files            1024                 1048576              files\n"
                "Max locked memory         8388608              8388608              bytes\n"
                "Max realtime priority     0                    0\n"
                "Max file size             unlimited            unlimited            bytes\n");
    tree_.write("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
    tree_.write("proc/sys/net/core/somaxconn", "4096\n");
    tree_.write("proc/sys/net/ipv4/tcp_syncookies", "1\n");
    tree_.write("proc/sys/net/ipv6/conf/all/disable_ipv6", "0\n");
    tree_.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    tree_.write("etc/hosts", "127.0.0.1 store.example\n");
    tree_.write("etc/resolv.conf", "nameserver 127.0.0.1\n");
    options_.root = tree_.root();
    options_.timeout = std::chrono::milliseconds(1000);
  }

  DoctorReport examined() const { return examine(options_); }

  /// Writes a certificate that is valid from `begin` for `lifetime`, and asks for it.
  void serve_certificate(WallTime begin, Duration lifetime) {
    tls::SelfSigned wanted;
    wanted.not_before = begin;
    wanted.lifetime = lifetime;
    const auto made = tls::Identity::self_signed(wanted);
    ASSERT_TRUE(made);
    tree_.write("tls/chain.pem", made->chain());
    tree_.write("tls/key.pem", made->key());
    options_.certificates = {{"/tls/chain.pem", "/tls/key.pem"}};
  }

  /// Returns the text of the report without its summary.
  std::string lines() const {
    std::string text = examined().to_text();
    return text.substr(0, text.find("doctor: "));
  }

  const WallTime now_ = OsPlatform().wall_time();
  os::TemporaryTree tree_;
  DoctorOptions options_;
};

TEST_F(DoctorTest, IsQuietWhenAllIsWell) {
  const DoctorReport report = examined();
  EXPECT_EQ(report.to_text(), "doctor: " + std::to_string(report.checks) + " checks: well\n");
  EXPECT_EQ(report.exit_status(), 0);
  EXPECT_GE(report.checks, 20U);
}

TEST_F(DoctorTest, PrintsALineForEachFindingAndASummary) {
  tree_.write("proc/sys/net/core/somaxconn", "128\n");
  DoctorReport report = examined();
  EXPECT_EQ(report.exit_status(), 1);
  EXPECT_TRUE(report.to_text().starts_with("backlog: net.core.somaxconn is 128, wanted 4096: "));
  EXPECT_TRUE(report.to_text().ends_with(" checks: 1 limits the service\n"));
  report.findings.push_back({.check = "x", .severity = checks::Severity::fatal, .found = "y"});
  EXPECT_EQ(report.exit_status(), 2);
  EXPECT_TRUE(report.to_text().ends_with(" checks: 1 prevents, 1 limits the service\n"));
}

TEST_F(DoctorTest, ShowsNotesOnlyIfAsked) {
  tree_.write(".dockerenv", "");
  const DoctorReport report = examined();
  EXPECT_EQ(report.exit_status(), 0);
  EXPECT_EQ(report.to_text().find("container"), std::string::npos);
  EXPECT_TRUE(report.to_text(Notes::shown).starts_with("container: Docker: "));
}

TEST_F(DoctorTest, WritesJson) {
  tree_.write("proc/sys/net/core/somaxconn", "128\n");
  const DoctorReport report = examined();
  EXPECT_EQ(
      report.to_json(),
      R"({"status":"limits","checks":)" + std::to_string(report.checks) +
          R"(,"findings":[{"check":"backlog","severity":"limits",)"
          R"("found":"net.core.somaxconn is 128","wanted":"4096",)"
          R"("consequence":"the kernel drops connections of a burst of more than 128 clients",)"
          R"("remedy":"sysctl -w net.core.somaxconn=4096"}]})");
}

TEST_F(DoctorTest, AcceptsAValidCertificate) {
  serve_certificate(now_ - hours(1), hours(24 * 30));
  EXPECT_EQ(lines(), "");
}

TEST_F(DoctorTest, NamesCertificatesOutsideOfTheirDates) {
  serve_certificate(now_ - hours(24 * 40), hours(24 * 38));
  EXPECT_TRUE(lines().starts_with("certificate: /tls/chain.pem: expired 2 days ago, wanted "));
  EXPECT_EQ(examined().exit_status(), 2);
  serve_certificate(now_ + hours(5), hours(24));
  EXPECT_NE(lines().find("not valid for another"), std::string::npos) << lines();
  EXPECT_EQ(examined().exit_status(), 2);
  serve_certificate(now_ - hours(24), hours(24 * 4) + hours(1));
  EXPECT_TRUE(lines().starts_with("certificate: /tls/chain.pem: expires in 3 days, wanted "));
  EXPECT_EQ(examined().exit_status(), 1);
}

TEST_F(DoctorTest, NamesFilesOfCertificatesThatAreMissingOrDoNotFit) {
  serve_certificate(now_, hours(24 * 30));
  const auto other = tls::Identity::self_signed({});
  tree_.write("tls/key.pem", other->key());
  EXPECT_NE(lines().find("certificate: /tls/chain.pem: key_mismatch"), std::string::npos)
      << lines();
  EXPECT_EQ(examined().exit_status(), 2);
  options_.certificates[0].key = "/tls/missing.pem";
  EXPECT_TRUE(lines().starts_with("certificate: /tls/missing.pem: No such file or directory, "))
      << lines();
}

// A configuration may be another's, and people paste a remedy into a shell.
TEST_F(DoctorTest, TextsOfAConfigurationActOnNothing) {
  options_.names = {"ho\x1b[31mst; rm x"};
  options_.certificates = {{"/tls/a;b\xc2\x9b.pem", "/tls/key.pem"}};
  const std::string text = lines();
  EXPECT_TRUE(text.contains(R"((getent hosts 'ho\x1b[31mst; rm x'; cat /etc/resolv.conf))"))
      << text;
  EXPECT_TRUE(text.contains(R"((ls -l '/tls/a;b\xc2\x9b.pem'))")) << text;
  EXPECT_FALSE(text.contains('\x1b') || text.contains('\x9b')) << text;
  const std::string json = examined().to_json();
  EXPECT_TRUE(json.contains(R"(getent hosts 'ho\u001b[31mst; rm x')")) << json;
  EXPECT_EQ(printable_prefix(json), json.size()) << json;
}

TEST_F(DoctorTest, ReachesStores) {
  const auto listener = os::open_listener(os::Address::loopback(0), {});
  ASSERT_TRUE(listener);
  const auto port = std::to_string(os::local_address(listener->get())->port());
  const std::string path = tree_.path("socket");
  const auto local = os::open_listener(os::Address::local(path).value(), {});
  ASSERT_TRUE(local);
  options_.stores = {"postgres://user:secret@127.0.0.1:" + port + "/shop",
                     "redis://store.example:" + port, "127.0.0.1:" + port, "unix:" + path};
  EXPECT_EQ(lines(), "");
}

TEST_F(DoctorTest, NamesAStoreThatRefusesWithoutItsPassword) {
  // Another socket has the port, but does not listen.
  const auto socket = os::open_datagram_socket({.local = os::Address::loopback(0)});
  options_.stores = {"postgres://user:secret@127.0.0.1:1/shop"};
  EXPECT_EQ(lines(),
            "store: postgres://127.0.0.1:1: Connection refused, wanted a connection: what needs "
            "this store fails (start the store, or correct its address)\n");
  EXPECT_EQ(examined().exit_status(), 1);
  options_.stores = {"unix:/no/such/socket", "ftp://a.example"};
  EXPECT_NE(lines().find("store: unix:/no/such/socket: No such file"), std::string::npos);
  EXPECT_NE(lines().find("store: a store whose URL cannot be read"), std::string::npos);
}

TEST_F(DoctorTest, NamesAStoreThatDoesNotAnswer) {
  // The queue of this listener is full, so the kernel drops further handshakes.
  const auto listener = os::open_listener(os::Address::loopback(0), {.backlog = 0});
  const os::Address address = os::local_address(listener->get()).value();
  const auto first = os::open_stream(address.family());
  const auto second = os::open_stream(address.family());
  for (const auto* each : {&first, &second}) {
    ::connect((*each)->get(), static_cast<const sockaddr*>(address.data()), address.size());
  }
  options_.stores = {address.to_string()};
  EXPECT_EQ(lines(), "store: " + address.to_string() +
                         ": no answer in 1 s, wanted a connection: what needs this store fails "
                         "(look for a firewall between the two)\n");
}

TEST_F(DoctorTest, NamesAMissingConfigurationOfDnsOnlyIfNamesAreWanted) {
  ::unlink(tree_.path("etc/resolv.conf").c_str());
  EXPECT_EQ(lines(), "");
  options_.names = {"store.example"};
  EXPECT_TRUE(lines().starts_with("name_servers: /etc/resolv.conf: No such file or directory"))
      << lines();
}

TEST_F(DoctorTest, NamesANameWithoutAnAddress) {
  options_.names = {"store.example", "absent.example"};
  tree_.write("etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
  EXPECT_TRUE(lines().starts_with("name: absent.example: ")) << lines();
}

TEST_F(DoctorTest, NamesSearchDomainsThatCostLookups) {
  options_.names = {"store.example"};
  tree_.write("etc/resolv.conf", "nameserver 127.0.0.1\nsearch a b c d\noptions ndots:5\n");
  EXPECT_EQ(lines(),
            "search_domains: ndots:5 and 4 search domains in /etc/resolv.conf, wanted one look-up "
            "for store.example: 4 look-ups that fail come first (a dot at the end of the name, or "
            "dnsConfig with ndots 1 in its pod)\n");
  tree_.write("etc/resolv.conf", "nameserver 127.0.0.1\nsearch a b c d\noptions ndots:1\n");
  EXPECT_EQ(lines(), "");
}

TEST_F(DoctorTest, NamesAnAddressThatIsInUseUnlessTheServiceRuns) {
  const auto listener = os::open_listener(os::Address::loopback(0), {});
  const os::Address address = os::local_address(listener->get()).value();
  options_.demands.endpoints = {address};
  EXPECT_TRUE(lines().starts_with("address: " + address.to_string() + ": in use, wanted "));
  EXPECT_EQ(examined().exit_status(), 2);
  options_.running = true;
  EXPECT_EQ(lines(), "");
}

TEST_F(DoctorTest, LeavesAnAddressFree) {
  os::Address address;
  {
    const auto listener = os::open_listener(os::Address::loopback(0), {});
    address = os::local_address(listener->get()).value();
  }
  options_.demands.endpoints = {address};
  EXPECT_EQ(lines(), "");
  EXPECT_TRUE(os::open_listener(address, {}));
}

}  // namespace
}  // namespace weir::doctor::doctor_test
