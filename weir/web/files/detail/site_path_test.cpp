// Tests of the paths of a site: no path leads out of its folder.
#include "weir/web/files/detail/site_path.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::http::site_path_test {
namespace {

std::string decoded(std::string_view raw, Dotfiles dotfiles = Dotfiles::hidden) {
  std::string storage;
  const auto path = decode_site_path(raw, dotfiles, storage);
  return path ? std::string(*path) : "(none)";
}

TEST(SitePath, IsDecodedOnce) {
  EXPECT_EQ(decoded(""), "");
  EXPECT_EQ(decoded("a.txt"), "a.txt");
  EXPECT_EQ(decoded("a/b/"), "a/b/");
  EXPECT_EQ(decoded("a%20b/%63/"), "a b/c/");
  EXPECT_EQ(decoded("%2561"), "%61");
  EXPECT_EQ(decoded("%252e%252e"), "%2e%2e");
  EXPECT_EQ(decoded("a..b/..."), "(none)");
  EXPECT_EQ(decoded("a..b/c.."), "a..b/c..");
}

TEST(SitePath, NeverLeadsUp) {
  for (const std::string_view raw :
       {"..",          "../a",   "a/..",   "a/../b",   ".",
        "./a",         "a/./b",  "%2e%2e", "%2e%2e/a", ".%2e/a",
        "%2E./a",      "..%2fa", "..%2Fa", "a%2fb",    "%2fetc/passwd",
        "/etc/passwd", "//a",    "a//b",   "..%5ca",   "a%5c..%5cb",
        "..\\a",       "a\\b",   "%00",    "a%00",     "a%00.txt",
        "%",           "%2",     "%zz",    "%2e",      "a/%2e%2e/%2e%2e/b",
        "a/%2e/"}) {
    for (const Dotfiles dotfiles : {Dotfiles::hidden, Dotfiles::served}) {
      EXPECT_EQ(decoded(raw, dotfiles), "(none)") << raw;
    }
  }
}

TEST(SitePath, HidesDotfiles) {
  for (const std::string_view raw : {".git", ".git/config", "a/.env", "%2egit", "a/.b/", "...a"}) {
    EXPECT_EQ(decoded(raw), "(none)") << raw;
    EXPECT_NE(decoded(raw, Dotfiles::served), "(none)") << raw;
  }
}

TEST(SitePath, MatchesPatterns) {
  EXPECT_TRUE(matches_pattern("*.html", "a.html"));
  EXPECT_TRUE(matches_pattern("*.html", "sub/a.html"));
  EXPECT_FALSE(matches_pattern("*.html", "a.htm"));
  EXPECT_TRUE(matches_pattern("assets/*", "assets/a.js"));
  EXPECT_FALSE(matches_pattern("assets/*", "assets/b/a.js"));
  EXPECT_FALSE(matches_pattern("assets/*", "x/assets/a.js"));
  EXPECT_TRUE(matches_pattern("assets/**", "assets/b/a.js"));
  EXPECT_TRUE(matches_pattern("**/img/*.png", "a/b/img/c.png"));
  EXPECT_TRUE(matches_pattern("**", "a/b"));
  EXPECT_TRUE(matches_pattern("?.js", "a.js"));
  EXPECT_FALSE(matches_pattern("?.js", ".js"));
  EXPECT_FALSE(matches_pattern("a?b/c", "a/b/c"));
  EXPECT_TRUE(matches_pattern("a*b*c", "aXXbYYc"));
  EXPECT_FALSE(matches_pattern("", "a"));
}

}  // namespace
}  // namespace weir::http::site_path_test
