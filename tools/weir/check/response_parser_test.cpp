#include "tools/weir/check/response_parser.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::check {
namespace {

/// What `text` is read as, in one piece; that it is the same byte by byte is checked too.
AnswerReader read(std::string_view text, bool ends = false, std::string_view method = "GET") {
  AnswerReader whole;
  AnswerReader bytewise;
  for (AnswerReader* each : {&whole, &bytewise}) each->asked(method);
  whole.read(text);
  for (std::size_t index = 0; index < text.size(); ++index) bytewise.read(text.substr(index, 1));
  if (ends) {
    whole.end();
    bytewise.end();
  }
  EXPECT_EQ(whole.fault(), bytewise.fault()) << text;
  EXPECT_EQ(whole.finals(), bytewise.finals()) << text;
  return whole;
}

TEST(AnswerReader, ReadsAnswersOfEveryFraming) {
  const AnswerReader reader = read(
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
      "HTTP/1.1 404\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n"
      "HTTP/1.1 204 None\r\n\r\n"
      "HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n"
      "HTTP/1.0 200 OK\r\n\r\nto the end",
      true);
  EXPECT_EQ(reader.fault(), "");
  EXPECT_EQ(reader.finals(), 5U);
  EXPECT_TRUE(reader.interim());
  ASSERT_EQ(reader.answers().size(), 6U);
  EXPECT_EQ(reader.answers()[1].body, "hello");
  EXPECT_EQ(reader.answers()[2].body, "no");
  EXPECT_EQ(reader.answers()[5].body, "to the end");
  EXPECT_TRUE(reader.answers()[5].closes && reader.answers()[5].until_end);
  EXPECT_FALSE(reader.answers()[1].closes);
}

TEST(AnswerReader, KnowsWhoCloses) {
  const auto closes = [](std::string_view head) {
    return read(std::string(head) + "Content-Length: 0\r\n\r\n").answers().at(0).closes;
  };
  EXPECT_FALSE(closes("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(closes("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n"));
  EXPECT_TRUE(closes("HTTP/1.0 200 OK\r\n"));
  EXPECT_FALSE(closes("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\n"));
}

TEST(AnswerReader, WhatHeadAsksForHasNoBody) {
  const AnswerReader reader = read(
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
      false, "HEAD");
  EXPECT_EQ(reader.finals(), 2U);
  EXPECT_EQ(reader.fault(), "");
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, "HEAD").fault(),
            "bytes that are no answer");
}

TEST(AnswerReader, SaysWhatIsNoHttp) {
  const auto fault = [](std::string_view text, bool ends = false) {
    return read(text, ends).fault();
  };
  EXPECT_EQ(fault("hello\r\n"), "bytes that are no answer");
  EXPECT_EQ(fault("HTTP/2.0 200 OK\r\n\r\n"), "bytes that are no answer");
  EXPECT_EQ(fault("HTTP/1.1 20 OK\r\n\r\n"), "no status line");
  EXPECT_EQ(fault("HTTP/1.1 2000 OK\r\n\r\n"), "no status line");
  EXPECT_EQ(fault("HTTP/1.1 999 OK\r\n\r\n"), "no status line");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nX : y\r\n\r\n"), "no field");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nX: a\nb\r\n\r\n"), "controls in a field");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "an answer with both lengths");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n"),
            "a Content-Length that is no number");
  EXPECT_EQ(fault("HTTP/1.1 204 OK\r\nContent-Length: 0\r\n\r\n"),
            "a length in an answer that has no body");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"), "an unknown coding");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx"), "a broken chunk");
  EXPECT_EQ(fault("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", true),
            "an answer that is cut off");
  EXPECT_EQ(fault("HTTP/1.1 200", true), "an answer that is cut off");
  EXPECT_EQ(fault("HTTP/1.1 200 " + std::string(AnswerReader::head_bytes_max, 'a')),
            "a head that does not end");
}

TEST(AnswerReader, AFloodOfAnswersIsNotKept) {
  AnswerReader reader;
  for (int sent = 0; sent < 100'000; ++sent) reader.read("HTTP/1.1 102 Processing\r\n\r\n");
  EXPECT_EQ(reader.fault(), "answers without end");
  EXPECT_EQ(reader.answers().size(), AnswerReader::answers_max);
}

TEST(AnswerReader, AResetEndsWhatHasNoLength) {
  AnswerReader without;
  without.read("HTTP/1.1 431 Much\r\nConnection: close\r\n\r\nmuch");
  EXPECT_EQ(without.finals(), 0U);
  without.reset();
  EXPECT_EQ(without.finals(), 1U);
  AnswerReader with;
  with.read("HTTP/1.1 431 Much\r\nContent-Length: 9\r\n\r\nmuch");
  with.reset();
  EXPECT_EQ(with.finals(), 0U);
  EXPECT_EQ(with.fault(), "");
}

TEST(AnswerReader, KeepsTheBeginningOfALongBody) {
  const std::string body(100'000, 'b');
  AnswerReader reader;
  reader.read("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + body);
  EXPECT_EQ(reader.finals(), 1U);
  EXPECT_EQ(reader.answers()[0].body_bytes, 100'000U);
  EXPECT_EQ(reader.answers()[0].body.size(), Answer::body_kept_max);
}

}  // namespace
}  // namespace weir::check
