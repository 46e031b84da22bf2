// Curves in a terminal, and what the server on localhost answers.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <stdexcept>

#include "report/serve.h"
#include "report/text_plot.h"

namespace hlat {
namespace {

Curve falling(double from) {
  Curve c;
  for (int64_t s = 1; s <= 300; ++s) c.add(s, from - 0.01 * static_cast<double>(s));
  return c;
}

TEST(TextPlot, PlainCharactersWithAxes) {
  const std::string text = text_plot("loss", {{"a", falling(5)}}, {.width = 60, .height = 8});
  EXPECT_TRUE(text.starts_with("loss\n"));
  EXPECT_NE(text.find("step 300"), std::string::npos) << text;
  EXPECT_NE(text.find("4.99"), std::string::npos) << text;
  EXPECT_NE(text.find('*'), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 60u) << line;
    EXPECT_EQ(std::count_if(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) > 126; }), 0);
  }
  EXPECT_LT(text.find('*'), text.rfind('*'));
}

TEST(TextPlot, BrailleColoursAndLetters) {
  const std::string braille = text_plot("loss", {{"a", falling(5)}}, {.width = 60, .height = 8, .braille = true});
  EXPECT_NE(braille.find("\xE2\xA0"), std::string::npos);
  EXPECT_EQ(braille.find('\x1b'), std::string::npos);
  const std::vector<TextCurve> two = {{"first", falling(5)}, {"second", falling(9)}};
  const std::string letters = text_plot("loss", two, {.width = 60, .height = 8, .braille = true});
  EXPECT_NE(letters.find("a  first"), std::string::npos) << letters;
  EXPECT_NE(letters.find("b  second"), std::string::npos);
  EXPECT_NE(text_plot("loss", two, {.width = 60, .height = 8, .braille = true, .color = true}).find("\x1b[34m"), std::string::npos);
}

TEST(TextPlot, EmptySinglePointsAndWideRanges) {
  EXPECT_EQ(text_plot("loss", {{"a", {.step = {1}, .value = {NAN}}}}, {}), "");
  EXPECT_NE(text_plot("loss", {{"a", {.step = {5}, .value = {2}}}}, {}).find('*'), std::string::npos);
  EXPECT_NE(text_plot("norm", {{"a", {.step = {1, 2}, .value = {1, 1e6}}}}, {}).find("norm (log)"), std::string::npos);
}

TEST(TextPlot, Utf8ByLocale) {
  EXPECT_TRUE(is_utf8_locale(nullptr, nullptr, "en_US.UTF-8"));
  EXPECT_TRUE(is_utf8_locale("", "C.utf8", "C"));
  EXPECT_FALSE(is_utf8_locale("C", "en_US.UTF-8", "en_US.UTF-8")) << "LC_ALL comes first";
  EXPECT_FALSE(is_utf8_locale(nullptr, nullptr, nullptr));
}

TEST(HttpReply, GetOnlyFromThisHostOnly) {
  const ServeAnswer answer = [](const std::string& path) {
    return path == "/" ? Served{.body = "hello"} : Served{.status = 404, .body = "none"};
  };
  const auto ask = [&](const std::string& request) { return http_reply(request, 80, answer); };
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\nhost: localhost:80\r\n\r\n").ends_with("\r\n\r\nhello"));
  EXPECT_TRUE(ask("HEAD / HTTP/1.1\r\nHost: localhost:80\r\n\r\n").ends_with("\r\n\r\n"));
  EXPECT_TRUE(ask("GET /x HTTP/1.1\r\nHost: localhost:80\r\n\r\n").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask("POST / HTTP/1.1\r\nHost: localhost:80\r\n\r\n").starts_with("HTTP/1.1 405"));
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 403"));
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403"));
  EXPECT_TRUE(http_reply("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 81, answer).starts_with("HTTP/1.1 403"));
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 200")) << "browsers leave port 80 out";
  for (const char* bad :
       {"", "GET", "\r\n\r\n", "GET / FTP/1\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost:80\r\n"})
    EXPECT_TRUE(ask(bad).starts_with("HTTP/1.1 400")) << bad;
}

// A run that is restarted cuts the files that a server is reading.
TEST(HttpReply, WhatCannotBeReadNowIsToldAndDoesNotEndTheServer) {
  const ServeAnswer answer = [](const std::string&) -> Served { throw std::runtime_error("cannot read metrics.jsonl"); };
  const std::string reply = http_reply("GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n", 80, answer);
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 500 ")) << reply;
  EXPECT_TRUE(reply.ends_with("cannot read metrics.jsonl\n")) << reply;
}

}  // namespace
}  // namespace hlat
