// Tests of the heads of parts, of boundaries, and of file names.
#include "weir/web/forms/detail/part_head.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::http::detail::part_head_test {
namespace {

std::optional<MultipartError> error_of(std::string_view lines, const MultipartLimits& limits = {}) {
  PartHead head;
  return head.parse(lines, limits);
}

PartHead parsed(std::string_view lines) {
  PartHead head;
  EXPECT_EQ(head.parse(lines, {}), std::nullopt) << lines;
  return head;
}

TEST(PartHead, ReadsNamesAndType) {
  const PartHead field = parsed("Content-Disposition: form-data; name=\"a b\"\r\n");
  EXPECT_EQ(field.name, "a b");
  EXPECT_EQ(field.file_name, std::nullopt);
  EXPECT_EQ(field.content_type, "text/plain");
  const PartHead file = parsed(
      "content-TYPE: image/png\r\nX-More: 1\r\n"
      "content-disposition: FORM-DATA;filename=\"\" ; NAME=token;other=1;\r\n");
  EXPECT_EQ(file.name, "token");
  EXPECT_EQ(file.file_name, "");
  EXPECT_EQ(file.content_type, "image/png");
  ASSERT_EQ(file.headers.size(), 3U);
  EXPECT_EQ(file.headers[1].name, "X-More");
  EXPECT_EQ(file.headers[1].value, "1");
}

TEST(PartHead, BackslashEscapesOnlyQuotesAndItself) {
  EXPECT_EQ(parsed("Content-Disposition: form-data; name=\"a\\\"b\\\\c\"\r\n").name, "a\"b\\c");
  EXPECT_EQ(
      parsed("Content-Disposition: form-data; name=a; filename=\"C:\\dir\\x.txt\"\r\n").file_name,
      "C:\\dir\\x.txt");
  EXPECT_EQ(parsed("Content-Disposition: form-data; name=\"a%22;b\"\r\n").name, "a%22;b");
}

TEST(PartHead, ExtendedNameCountsWithoutAPlainOne) {
  const auto file_name_of = [](std::string_view more) {
    return parsed("Content-Disposition: form-data; name=a; " + std::string(more) + "\r\n")
        .file_name;
  };
  EXPECT_EQ(file_name_of("filename=sea.txt; filename*=utf-8''other.txt"), "sea.txt");
  EXPECT_EQ(file_name_of("filename*=latin1''x%e4; FileName=sea.txt"), "sea.txt");
  EXPECT_EQ(file_name_of("filename*=UTF-8'de'%C3%A4%20b.txt"), "\xc3\xa4 b.txt");
  EXPECT_EQ(file_name_of("filename*=utf-8''"), "");
  EXPECT_EQ(file_name_of("filename*=latin1''%e4"), "") << "it is a file";
  EXPECT_EQ(file_name_of("filename*=nonsense"), "");
  EXPECT_EQ(parsed("Content-Disposition: form-data; name*=utf-8''b%C3%A4\r\n").name, "b\xc3\xa4");
  EXPECT_EQ(parsed("Content-Disposition: form-data; name*=utf-8''b; name=c\r\n").name, "c");
}

TEST(PartHead, IsReusedWithoutRests) {
  PartHead head;
  EXPECT_EQ(
      head.parse("Content-Disposition: form-data; name=a; filename=f\r\nContent-Type: x/y\r\n", {}),
      std::nullopt);
  EXPECT_EQ(head.parse("Content-Disposition: form-data; name=b\r\n", {}), std::nullopt);
  EXPECT_EQ(head.name, "b");
  EXPECT_EQ(head.file_name, std::nullopt);
  EXPECT_EQ(head.content_type, "text/plain");
  EXPECT_EQ(head.headers.size(), 1U);
}

TEST(PartHead, RefusesMalformedHeads) {
  using enum MultipartError;
  const std::vector<std::pair<std::string_view, MultipartError>> cases{
      {"", bad_disposition},
      {"Content-Type: text/plain\r\n", bad_disposition},
      {"Content-Disposition: attachment; name=a\r\n", bad_disposition},
      {"Content-Disposition: form-data\r\n", bad_disposition},
      {"Content-Disposition: form-data; filename=a\r\n", bad_disposition},
      {"Content-Disposition: form-datax; name=a\r\n", bad_disposition},
      {"Content-Disposition: form-data; name=\"a\r\n", bad_disposition},
      {"Content-Disposition: form-data; name\r\n", bad_disposition},
      {"Content-Disposition: form-data; name=a b\r\n", bad_disposition},
      {"Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b\r\n",
       bad_disposition},
      {"Content-Disposition: form-data; name=a; name=a\r\n", repeated_parameter},
      {"Content-Disposition: form-data; name=a; filename=b; FileName=c\r\n", repeated_parameter},
      {"Content-Disposition: form-data; name=a; filename*=utf-8''b; filename*=utf-8''b\r\n",
       repeated_parameter},
      {"Content-Disposition: form-data; name*=latin1''b\r\n", bad_disposition},
      {"Content-Disposition: form-data; name=a; filename*=utf-8''%ff\r\n", bad_name},
      {"Content-Disposition: form-data; name=a; filename*=utf-8''%0a\r\n", bad_name},
      {"Content-Disposition: form-data; name=a; filename*=utf-8''%7f\r\n", bad_name},
      {"Content-Disposition: form-data; name=a; filename*=utf-8''b%00\r\n", bad_name},
      {"Content-Disposition: form-data; name=a; filename*=utf-8''aaaaaaaa%4\r\n", bad_name},
      {"Content-Disposition: form-data; name=\"\xff\"\r\n", bad_name},
      {"Content-Disposition: form-data; name=\"a\tb\"\r\n", bad_name},
      {"Content-Disposition: form-data; name=a; filename=\"\xc3\"\r\n", bad_name},
      {"Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64\r\n",
       bad_encoding},
      {"no header\r\n", bad_part_head},
      {": empty\r\n", bad_part_head},
      {"Content-Disposition : form-data; name=a\r\n", bad_part_head},
      {"Content-Disposition: form-data;\r\n name=a\r\n", bad_disposition},
      {"Content-Disposition: form-data; name=a\r\n folded: 1\r\n", bad_part_head},
      {"Content-Disposition: form-data; name=a\rb\r\n", bad_part_head},
      {"Content-Disposition: form-data; name=a\nX: b\r\n", bad_part_head},
      {std::string_view("Content-Disposition: form-data; name=\"a\0b\"\r\n", 44), bad_part_head},
  };
  for (const auto& [lines, error] : cases) EXPECT_EQ(error_of(lines), error) << lines;
}

TEST(PartHead, KeepsItsLimits) {
  const std::string disposition = "Content-Disposition: form-data; name=a\r\n";
  std::string lines = disposition;
  for (int each = 0; each < 15; ++each) lines += "X: y\r\n";
  EXPECT_EQ(error_of(lines), std::nullopt);
  EXPECT_EQ(error_of(lines + "X: y\r\n"), MultipartError::too_many_headers);
  const MultipartLimits limits{.name_bytes_max = 4};
  const auto named = [](std::string_view name) {
    return "Content-Disposition: form-data; name=a; filename=\"" + std::string(name) + "\"\r\n";
  };
  EXPECT_EQ(error_of(named("abcd"), limits), std::nullopt);
  EXPECT_EQ(error_of(named("abcde"), limits), MultipartError::name_too_long);
  const std::string encoded = "Content-Disposition: form-data; name=a; filename*=utf-8''%61%62cd";
  EXPECT_EQ(error_of(encoded + "\r\n", limits), std::nullopt);
  EXPECT_EQ(error_of(encoded + "e\r\n", limits), MultipartError::name_too_long);
  EXPECT_EQ(error_of("Content-Disposition: form-data; name=abcde\r\n", limits),
            MultipartError::name_too_long);
}

TEST(Boundary, IsThatOfTheContentType) {
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(boundary_of("Multipart/Form-Data ;charset=utf-8; BOUNDARY=\"a b?\""), "a b?");
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=" + std::string(70, 'x')),
            std::string(70, 'x'));
}

TEST(Boundary, RefusesOtherTypesAndCharacters) {
  for (const char* type :
       {"", "multipart/form-data", "multipart/mixed; boundary=a",
        "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"a \"", "multipart/form-data; boundary=\"a\\\"b\"",
        "multipart/form-data; boundary=a; boundary=a", "multipart/form-data; boundary=\"a",
        "multipart/form-data boundary=a", "multipart/form-data; boundary=a@b",
        "multipart/form-data; boundary=\xc3\xa4", "multipart/form-datax; boundary=a"}) {
    EXPECT_EQ(boundary_of(type), std::nullopt) << type;
  }
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=" + std::string(71, 'x')), std::nullopt);
}

TEST(SafeFileName, IsNeverAPath) {
  EXPECT_EQ(safe_file_name("photo.jpg"), "photo.jpg");
  EXPECT_EQ(safe_file_name("../../etc/passwd"), "passwd");
  EXPECT_EQ(safe_file_name("C:\\Users\\ada\\photo.jpg"), "photo.jpg");
  EXPECT_EQ(safe_file_name("C:photo.jpg"), "C_photo.jpg");
  EXPECT_EQ(safe_file_name("a/"), "file");
  EXPECT_EQ(safe_file_name(""), "file");
  EXPECT_EQ(safe_file_name("."), "file");
  EXPECT_EQ(safe_file_name("x/.."), "file");
  EXPECT_EQ(safe_file_name("a\nb\x7f"), "a_b_");
  EXPECT_EQ(safe_file_name("a\u009b2J\u2028.txt"), "a_2J_.txt") << "C1 and separators";
  EXPECT_EQ(safe_file_name("invoice_\u202efdp.exe"), "invoice__fdp.exe") << "a change of direction";
  EXPECT_EQ(safe_file_name("a\xff\xc3.txt"), "a__.txt") << "no UTF-8";
  EXPECT_EQ(safe_file_name("\u00fcber.txt"), "\u00fcber.txt");
  EXPECT_EQ(safe_file_name(std::string(300, 'x')), std::string(255, 'x'));
  const std::string long_name = std::string(254, 'x') + "\xc3\xa4";
  EXPECT_EQ(safe_file_name(long_name), std::string(254, 'x'));
}

}  // namespace
}  // namespace weir::http::detail::part_head_test
