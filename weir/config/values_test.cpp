// Tests of the values of a configuration as people see them.
#include "weir/config/values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config::values_test {
namespace {

struct Store {
  std::string url = "postgres://shop:hunter2@db:5432/shop";
  std::string password = "hunter2";
  int connections = 4;
};
struct Settings {
  std::string name = "shop";
  int port = 80;
  Store store;
  std::map<std::string, std::string> labels;
  std::string salt = "pepper";
};

const ShownValue& find(const std::vector<ShownValue>& values, std::string_view key) {
  static const ShownValue none;
  const auto found = std::ranges::find(values, key, &ShownValue::key);
  EXPECT_NE(found, values.end()) << key;
  return found == values.end() ? none : *found;
}

TEST(ShownValues, NameTheirOrigins) {
  Sources sources;
  sources.prefix = "shop";
  sources.environment = {"SHOP_PORT=81", "OTHER=1"};
  sources.arguments = {"--store.connections=9", "--labels.a", "b"};
  FileText file;
  file.path = "shop.toml";
  file.text = "name = 'x'\nport = 1\n[store]\nconnections = 2\n";
  const auto loaded = load<Settings>(file, sources);
  ASSERT_TRUE(loaded.has_value());
  const auto values = shown_values(*loaded, file, sources);
  EXPECT_EQ(find(values, "name").origin, "shop.toml:1");
  EXPECT_EQ(find(values, "name").value, "\"x\"");
  EXPECT_EQ(find(values, "port").origin, "SHOP_PORT");
  EXPECT_EQ(find(values, "port").value, "81");
  EXPECT_EQ(find(values, "store.connections").origin, "--store.connections");
  EXPECT_EQ(find(values, "store.connections").value, "9");
  EXPECT_EQ(find(values, "labels").origin, "--labels");
  EXPECT_EQ(find(values, "salt").origin, "default");
}

struct Stores {
  std::vector<Store> stores{Store{.url = "a", .password = "hunter2"}};
  std::map<std::string, std::string> headers{{"Authorization", "Bearer hunter2"}};
  std::map<std::string, std::string> labels{{"region", "eu"}};
  std::string dsn = "host=db password=hunter2";
  std::string feed = "https://feed.example/?apiKey=hunter2";
  std::string page = "https://page.example/?q=1";
  std::string dbPassword = "hunter2";
};

TEST(ShownValues, HideSecretsInListsMapsAndTexts) {
  const auto values = shown_values(Stores(), FileText(), Sources());
  for (const std::string_view key : {"stores", "headers", "dsn", "feed", "dbPassword"}) {
    EXPECT_EQ(find(values, key).value, "(hidden)") << key;
    EXPECT_TRUE(find(values, key).is_secret) << key;
  }
  EXPECT_EQ(find(values, "labels").value, "{\"region\" = \"eu\"}");
  EXPECT_EQ(find(values, "page").value, "\"https://page.example/?q=1\"");
}

struct Urls {
  std::string user = "redis://hunter2@cache:6379/0";
  std::string both = "https://shop:hunter2@a.example,https://shop:hunter2@b.example/x";
  std::string slash = "postgres://shop:hun/ter2@db:5432/shop";
  std::string question = "amqp://shop:1?hunter2@queue";
  std::string sign = "https://shop:p@hunter2@a.example/x";
  std::string argument = "https://a.example/?q=1&access_token=hunter2";
  std::string signed_url = "https://a.example/file?X-Amz-Signature=hunter2";
  std::string fragment = "https://a.example/#id_token=hunter2";
  std::string mysql_dsn = "shop:hunter2@tcp(db:3306)/shop";
  std::string plain = "https://a.example:8443/b?q=1";
  std::string mail = "https://a.example/users/me@b.example";
};

TEST(ShownValues, HideSecretsInUrls) {
  const auto values = shown_values(Urls(), FileText(), Sources());
  for (const ShownValue& each : values) {
    EXPECT_EQ(each.value.find("ter2"), std::string::npos) << each.key << " " << each.value;
  }
  EXPECT_EQ(find(values, "user").value, "\"redis://(hidden)@cache:6379/0\"");
  EXPECT_EQ(find(values, "both").value,
            "\"https://(hidden)@a.example,https://(hidden)@b.example/x\"");
  EXPECT_EQ(find(values, "plain").value, "\"https://a.example:8443/b?q=1\"");
  EXPECT_EQ(find(values, "mail").value, "\"https://a.example/users/me@b.example\"");
}

TEST(ShownValues, HideSecrets) {
  const FileText file;
  const Sources sources;
  const auto values = shown_values(Settings(), file, sources, {"salt"});
  EXPECT_EQ(find(values, "store.password").value, "(hidden)");
  EXPECT_TRUE(find(values, "store.password").is_secret);
  EXPECT_EQ(find(values, "salt").value, "(hidden)");
  EXPECT_EQ(find(values, "store.url").value, "\"postgres://(hidden)@db:5432/shop\"");
  for (const ShownValue& each : values) {
    EXPECT_EQ(each.value.find("hunter2"), std::string::npos) << each.key;
  }
}

TEST(ShownValues, KnowTheNamesOfSecrets) {
  EXPECT_TRUE(is_secret_name("api.TOKEN"));
  EXPECT_TRUE(is_secret_name("tls_private_key"));
  EXPECT_TRUE(is_secret_name("auth.user"));
  EXPECT_TRUE(is_secret_name("dbPassword"));
  EXPECT_TRUE(is_secret_name("API-Key"));
  EXPECT_TRUE(is_secret_name("store.dsn"));
  EXPECT_TRUE(is_secret_name("DBPASSWORD"));
  EXPECT_TRUE(is_secret_name("authtoken"));
  EXPECT_TRUE(is_secret_name("client_secret"));
  EXPECT_FALSE(is_secret_name("monkey"));
  EXPECT_FALSE(is_secret_name("passenger"));
  EXPECT_FALSE(is_secret_name("keyboard"));
  EXPECT_FALSE(is_secret_name("server.port"));
  EXPECT_FALSE(is_secret_name(""));
}

}  // namespace
}  // namespace weir::config::values_test
