// The language of task templates: fields, paths, indices, operators and functions, and what is said where one is wrong.
#include "task/template.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/message_of.h"

namespace hlat {
namespace {

const Json kRecord = Json::parse(R"({"q": "  Why?\n", "n": 7, "yes": true, "none": null, "word": "ÉCOLE d'Été",
  "choices": [{"text": "red", "label": "A"}, {"text": "blue", "label": "B"}], "gold": {"true one": 1, "b": 0, "a": 0}})");

Template made(std::string_view text, Rewrite rewrite = {}) { return {text, std::make_shared<const Rewrite>(std::move(rewrite))}; }

std::string filled(std::string_view text) {
  const Json shared = {{"subtask", "us_history"}, {"n", 8}};
  return made(text).text({kRecord, &shared});
}

Json value(std::string_view text) { return made(text).value({kRecord}); }

TEST(TaskTemplate, TextAroundExpressionsIsKept) {
  EXPECT_EQ(filled("Q: {{ q | strip }}\nA:"), "Q: Why?\nA:");
  EXPECT_EQ(filled("{{n}}{{ n }}"), "77");
  EXPECT_EQ(filled("}} {not one} {{ '}}' }}"), "}} {not one} }}");
  EXPECT_EQ(filled(""), "");
}

TEST(TaskTemplate, RecordsComeBeforeSharedFields) {
  EXPECT_EQ(filled("{{ subtask | replace('_', ' ') }}"), "us history");
  EXPECT_EQ(filled("{{ n }}"), "7");
}

TEST(TaskTemplate, PathsIndicesAndParts) {
  EXPECT_EQ(filled("{{ choices[1].text }} {{ choices[-2].label }}"), "blue A");
  EXPECT_EQ(filled("{{ gold['true one'] }}"), "1");
  EXPECT_EQ(filled("{{ word[0] }}|{{ word[1:3] }}|{{ word[-3:] }}|{{ word[:-4] }}|{{ word[5:2] }}|{{ word[-99:99] }}"),
            "É|CO|Été|ÉCOLE d||ÉCOLE d'Été");
  EXPECT_EQ(value("{{ [1, 2, 3][1:] }}"), Json({2, 3}));
}

TEST(TaskTemplate, Operators) {
  EXPECT_EQ(value("{{ n + 1 - 3 }}"), 5);
  EXPECT_EQ(filled("{{ 'a' + n + \"b\" }}"), "a7b");
  EXPECT_EQ(value("{{ ['a'] + ['b'] }}"), Json({"a", "b"}));
  EXPECT_EQ(filled("{{ 'few' if n < 10 and not n == 3 else 'many' }}"), "few");
  EXPECT_EQ(filled("{{ 'x' if n >= 8 or n != 7 else 'y' if yes else 'z' }}"), "y");
  EXPECT_EQ(filled(R"({{ 'it\'s' + "\n" }})"), "it's\n");
  EXPECT_EQ(value("{{ yes == true }}"), true);
}

TEST(TaskTemplate, FunctionsOfTexts) {
  EXPECT_EQ(filled("{{ word | lower }}|{{ word | capitalize }}|{{ 'élan DU' | capitalize }}"), "école d'été|École d'été|Élan du");
  EXPECT_EQ(
      filled("{{ 'a b c' | before(' ') }}|{{ 'a b c' | after(' ') }}|{{ 'a b c' | before_last(' ') }}|{{ 'a b c' | after_last(' ') }}"),
      "a|b c|a b|c");
  EXPECT_EQ(filled("{{ 'a,b' | split(',') | join(' and ') }}"), "a and b");
  EXPECT_EQ(value("{{ ' -12 ' | int }}"), -12);
  EXPECT_EQ(value("{{ word | length }}"), 11);
  EXPECT_EQ(filled("{{ yes }}"), "True") << "as Python writes it";
}

TEST(TaskTemplate, FunctionsOfListsAndObjects) {
  EXPECT_EQ(value("{{ gold | keys }}"), Json({"true one", "b", "a"})) << "in the order of the data";
  EXPECT_EQ(value("{{ gold | values }}"), Json({1, 0, 0}));
  EXPECT_EQ(value("{{ choices | pluck('text') }}"), Json({"red", "blue"}));
  EXPECT_EQ(value("{{ 'B' | index_of(choices | pluck('label')) }}"), 1);
  EXPECT_EQ(value("{{ [' a', 'b '] | strip }}"), Json({"a", "b"})) << "a function of a text is applied to each";
}

TEST(TaskTemplate, RewriteAppliesTheTasksReplacementsInOrder) {
  Rewrite rewrite;
  rewrite.add(R"(\(\s*([^\)]*?)\s*\))", R"((\1))");
  rewrite.add(" ,", ",");
  EXPECT_EQ(made("{{ '( so ) , it is' | rewrite }}", std::move(rewrite)).text({kRecord}), "(so), it is");
  Rewrite empty_matches;
  empty_matches.add("x*", "-");
  EXPECT_EQ(made("{{ 'éxx' | rewrite }}", std::move(empty_matches)).text({kRecord}), "-é--") << "as Python's re.sub";
  EXPECT_NE(message_of([&] { Rewrite().add("a", R"(\1)"); }).find("of which there are 0"), std::string::npos);
}

TEST(TaskTemplate, SaysWhatIsWrongWithATemplate) {
  const auto problem = [](std::string_view text) { return message_of([&] { made(text); }); };
  EXPECT_EQ(problem("{{ q | stripp }}"), "{{ q | stripp }}: no function 'stripp'; did you mean strip? at ' '");
  EXPECT_NE(problem("{{ q | replace('a') }}").find("replace takes 2 arguments, not 1"), std::string::npos);
  EXPECT_NE(problem("a {{ q").find("'{{' without '}}'"), std::string::npos);
  EXPECT_NE(problem("{{ q q }}").find("not understood"), std::string::npos);
  EXPECT_NE(problem("{{ }}").find("a value is missing"), std::string::npos);
  EXPECT_NE(problem("{{ (q }}").find("')' is missing"), std::string::npos);
  EXPECT_NE(problem("{{ q if n }}").find("'else' is missing"), std::string::npos);
}

TEST(TaskTemplate, SaysWhatIsWrongWithARecord) {
  const auto problem = [](std::string_view text) { return message_of([&] { value(text); }); };
  EXPECT_EQ(problem("{{ goal }}"), "no field 'goal'; there are q, n, yes, none, word, choices, gold");
  EXPECT_NE(problem("a {{ choices }}").find("a list where a text is needed"), std::string::npos);
  EXPECT_NE(problem("a {{ none }}").find("null where a text is needed"), std::string::npos);
  EXPECT_NE(problem("{{ choices[2] }}").find("item 2 of a list of 2"), std::string::npos);
  EXPECT_NE(problem("{{ 'C' | index_of(['A', 'B']) }}").find(R"("C" is none of ["A","B"])"), std::string::npos);
  EXPECT_NE(problem("{{ 'x' | before('_') }}").find("no '_' in"), std::string::npos);
  EXPECT_NE(problem("{{ 'x1' | int }}").find("is not a whole number"), std::string::npos);
}

}  // namespace
}  // namespace hlat
