// Tests of the media types of files.
#include "weir/web/files/media_types.hpp"

#include <gtest/gtest.h>

namespace weir::http::media_types_test {
namespace {

TEST(MediaTypes, FollowTheExtension) {
  EXPECT_EQ(media_type_of("a.css").text(), "text/css; charset=utf-8");
  EXPECT_EQ(media_type_of("sub.d/A.HTML").text(), "text/html; charset=utf-8");
  EXPECT_EQ(media_type_of("a.tar.gz").text(), "application/gzip");
  EXPECT_EQ(media_type_of("a.woff2").text(), "font/woff2");
  EXPECT_EQ(media_type_of("a.7z").text(), "application/x-7z-compressed");
  EXPECT_EQ(media_type_of("a.zst").text(), "application/zstd");
  EXPECT_EQ(media_type_of("live/a.M3U8").text(), "application/vnd.apple.mpegurl");
  EXPECT_EQ(media_type_of("a.docx").text(),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document");
  EXPECT_EQ(media_type_of("server.log").text(), "text/plain; charset=utf-8");
  EXPECT_EQ(media_type_of("map.geojson").text(), "application/geo+json");
}

TEST(MediaTypes, AreUnknownWithoutAKnownExtension) {
  for (const auto* name :
       {"", "a", "a.", ".css", "html", "a.css/b", "a.unknown", "a.averyveryverylongextension"}) {
    EXPECT_EQ(media_type_of(name).text(), "application/octet-stream") << name;
  }
}

TEST(MediaTypes, ExtensionIsBehindTheLastDot) {
  EXPECT_EQ(extension_of("a.b.c"), "c");
  EXPECT_EQ(extension_of("a.b/c"), "");
  EXPECT_EQ(extension_of("x/.profile"), "");
  EXPECT_EQ(extension_of("a."), "");
}

}  // namespace
}  // namespace weir::http::media_types_test
