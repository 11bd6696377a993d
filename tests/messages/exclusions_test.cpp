// The table of the carriers on which a case does not run, tests/messages/exclusions.md.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/carrier.hpp"
#include "tests/messages/client_case.hpp"
#include "tests/messages/message_case.hpp"

namespace weir::tests::exclusions_test {
namespace {

using namespace messages;

/// The carriers that cannot express a case, for one reason.
using Carriers = std::vector<Carrier>;

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& each : names) text += (text.empty() ? "" : ", ") + each;
  return text;
}

/// Returns a text such as "HTTP/1.0, HTTP/1.1: direct".
std::string text_of(const Carriers& carriers) {
  std::map<std::string, std::set<std::string>> ways;       // by protocol
  std::map<std::string, std::set<std::string>> protocols;  // by their ways
  for (const Carrier& each : carriers) ways[name_of(each.protocol)].insert(name_of(each.way));
  for (const auto& [protocol, own] : ways) protocols[joined(own)].insert(protocol);
  std::string text;
  for (const auto& [own, of] : protocols) {
    if (!text.empty()) text += "; ";
    text += joined(of);
    if (ways.at(*of.begin()).size() < 3) text += ": " + own;
  }
  return text;
}

/// The cases of each reason and its carriers.
class Table {
 public:
  /// Adds a case with its reasons.
  void add(const std::string& name, const std::map<std::string, Carriers>& reasons) {
    for (const auto& [reason, carriers] : reasons) {
      rows_["**" + text_of(carriers) + "**: " + reason + "."].push_back(name);
    }
  }
  std::string text() const {
    std::string text;
    for (const auto& [head, names] : rows_) {
      text += "\n" + head + "\n\n";
      for (const std::string& each : names) text += "- " + each + "\n";
    }
    return text;
  }

 private:
  std::map<std::string, std::vector<std::string>> rows_;
};

std::string page() {
  Table messages;
  for (const MessageCase& test : message_cases()) {
    std::map<std::string, Carriers> reasons;
    for (const Carrier& carrier : all_carriers()) {
      if (auto reason = exclusion_of(test, carrier)) reasons[*reason].push_back(carrier);
    }
    messages.add(test.name, reasons);
  }
  Table clients;
  for (const ClientCase& test : client_cases()) {
    std::map<std::string, Carriers> reasons;
    for (const auto protocol : {Protocol::http_1_0, Protocol::http_1_1, Protocol::http_2}) {
      const auto reason = exclusion_of(test, ServerCarrier{protocol, Layer::plain});
      // The client of Weir has no proxy here; the way is that of a server.
      if (!reason) continue;
      for (const auto way : {Way::direct, Way::proxied_http_1_1, Way::proxied_http_2}) {
        reasons[*reason].push_back({protocol, Layer::plain, way});
      }
    }
    clients.add(test.name, reasons);
  }
  return "# Cases that a carrier cannot express\n\n"
         "A case of the suite of messages runs on every carrier except for those below, plain and "
         "over TLS.\nMemory has no TLS. `exclusions_test.cpp` fails if this page is not current, "
         "and prints "
         "the current one.\n\n## Messages from a client to a handler\n" +
         messages.text() + "\n## Messages to the client of Weir\n" + clients.text();
}

TEST(MessageExclusions, AreOnTheirPage) {
  std::ifstream file(WEIR_TEST_DATA_DIR "/../messages/exclusions.md");
  std::ostringstream written;
  written << file.rdbuf();
  const std::string current = page();
  EXPECT_TRUE(written.str() == current) << "tests/messages/exclusions.md has to be:\n" << current;
}

}  // namespace
}  // namespace weir::tests::exclusions_test
