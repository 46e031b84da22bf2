// A recursive-descent parser whose every method returns a function that evaluates what it has read.
#include "task/expression.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/error.h"
#include "config/nearest.h"
#include "task/value_operators.h"

namespace hlat {
namespace {

using Evaluate = Expression::Evaluate;

constexpr bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr std::array<std::string_view, 7> kWords = {"and", "or", "not", "if", "else", "true", "false"};

class Parser {
 public:
  Parser(std::string_view text, std::shared_ptr<const Rewrite> rewrite) : text_(text), rewrite_(std::move(rewrite)) {}

  Evaluate run() {
    Evaluate out = conditional();
    if (!rest().empty()) refuse("not understood");
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail("{{{{{}}}}}: {} at '{}'", text_, what, at_ < text_.size() ? text_.substr(at_) : "the end");
  }

  std::string_view rest() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return text_.substr(at_);
  }

  bool take(std::string_view symbol) {
    if (!rest().starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }

  void need(std::string_view symbol) {
    if (!take(symbol)) refuse(fmt::format("'{}' is missing", symbol));
  }

  std::string_view next_name() {
    const std::string_view ahead = rest();
    size_t size = 0;
    if (!ahead.empty() && is_name_start(ahead[0]))
      while (size < ahead.size() && (is_name_start(ahead[size]) || is_digit(ahead[size]))) ++size;
    return ahead.substr(0, size);
  }

  bool take_word(std::string_view word) { return next_name() == word && take(word); }

  std::string name(std::string_view what) {
    const std::string found(next_name());
    if (found.empty() || std::find(kWords.begin(), kWords.end(), found) != kWords.end()) refuse(fmt::format("{} is missing", what));
    at_ += found.size();
    return found;
  }

  Evaluate conditional() {
    Evaluate value = either();
    if (!take_word("if")) return value;
    Evaluate condition = either();
    if (!take_word("else")) refuse("'else' is missing");
    return [value, condition, other = conditional()](const Fields& f) { return truth(condition(f)) ? value(f) : other(f); };
  }

  Evaluate either() {
    Evaluate left = both();
    while (take_word("or")) left = [left, right = both()](const Fields& f) -> Json { return truth(left(f)) || truth(right(f)); };
    return left;
  }

  Evaluate both() {
    Evaluate left = negation();
    while (take_word("and")) left = [left, right = negation()](const Fields& f) -> Json { return truth(left(f)) && truth(right(f)); };
    return left;
  }

  Evaluate negation() {
    if (!take_word("not")) return comparison();
    return [value = negation()](const Fields& f) -> Json { return !truth(value(f)); };
  }

  Evaluate comparison() {
    Evaluate left = terms();
    for (const std::string_view how : {"==", "!=", "<=", ">=", "<", ">"})
      if (take(how)) return [left, how, right = terms()](const Fields& f) -> Json { return compared(how, left(f), right(f)); };
    return left;
  }

  Evaluate terms() {
    Evaluate left = piped();
    for (;;) {
      if (take("+"))
        left = [left, right = piped()](const Fields& f) { return sum(left(f), right(f)); };
      else if (take("-"))
        left = [left, right = piped()](const Fields& f) { return difference(left(f), right(f)); };
      else
        return left;
    }
  }

  Evaluate piped() {
    Evaluate value = path();
    while (take("|")) value = call(value);
    return value;
  }

  Evaluate call(const Evaluate& value) {
    const std::string wanted = name("the name of a function");
    const Function* function = find_function(wanted);
    if (function == nullptr) {
      const std::vector<std::string_view> known = function_names();
      const std::string_view near = nearest(wanted, known);
      refuse(near.empty() ? fmt::format("no function '{}'; there are {}", wanted, fmt::join(known, ", "))
                          : fmt::format("no function '{}'; did you mean {}?", wanted, near));
    }
    std::vector<Evaluate> arguments;
    if (take("(") && !take(")")) arguments = items(")");
    if (arguments.size() != function->arguments)
      refuse(fmt::format("{} takes {} argument{}, not {}", wanted, function->arguments, function->arguments == 1 ? "" : "s",
                         arguments.size()));
    return [value, function, arguments, rewrite = rewrite_](const Fields& f) {
      std::vector<Json> given;
      for (const Evaluate& a : arguments) given.push_back(a(f));
      return function->call(value(f), given, *rewrite);
    };
  }

  std::vector<Evaluate> items(std::string_view close) {
    std::vector<Evaluate> out;
    do out.push_back(conditional());
    while (take(","));
    need(close);
    return out;
  }

  Evaluate path() {
    Evaluate value = primary();
    for (;;) {
      if (take("."))
        value = [value, field = name("a field")](const Fields& f) { return member(value(f), field); };
      else if (take("["))
        value = bracket(value);
      else
        return value;
    }
  }

  Evaluate bracket(const Evaluate& value) {
    const auto constant = [](int64_t number) { return [number](const Fields&) -> Json { return number; }; };
    Evaluate begin = constant(0);
    if (!take(":")) {
      begin = conditional();
      if (take("]")) return [value, begin](const Fields& f) { return item(value(f), begin(f)); };
      need(":");
    }
    if (take("]")) return [value, begin](const Fields& f) { return part(value(f), begin(f), std::numeric_limits<int64_t>::max()); };
    Evaluate end = conditional();
    need("]");
    return [value, begin, end](const Fields& f) { return part(value(f), begin(f), end(f)); };
  }

  Evaluate primary() {
    const std::string_view ahead = rest();
    if (ahead.empty()) refuse("a value is missing");
    if (ahead[0] == '\'' || ahead[0] == '"') return [text = quoted()](const Fields&) -> Json { return text; };
    if (is_digit(ahead[0]) || (ahead[0] == '-' && ahead.size() > 1 && is_digit(ahead[1]))) return number();
    if (take_word("true")) return [](const Fields&) -> Json { return true; };
    if (take_word("false")) return [](const Fields&) -> Json { return false; };
    if (take("(")) {
      Evaluate inner = conditional();
      need(")");
      return inner;
    }
    if (take("[")) return list();
    return [field = name("a field")](const Fields& f) { return look_up(f, field); };
  }

  Evaluate list() {
    std::vector<Evaluate> parts;
    if (!take("]")) parts = items("]");
    return [parts](const Fields& f) {
      Json out = Json::array();
      for (const Evaluate& p : parts) out.push_back(p(f));
      return out;
    };
  }

  Evaluate number() {
    size_t size = 1;
    const std::string_view ahead = rest();
    while (size < ahead.size() && is_digit(ahead[size])) ++size;
    if (size > 15) refuse("a number that is too large");
    at_ += size;
    return [value = std::stoll(std::string(ahead.substr(0, size)))](const Fields&) -> Json { return value; };
  }

  std::string quoted() {
    const char quote = text_[at_++];
    std::string out;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] != '\\' || at_ + 1 == text_.size()) {
        out += text_[at_];
        continue;
      }
      const char next = text_[++at_];
      out += next == 'n' ? '\n' : next == 't' ? '\t' : next;
    }
    if (at_ == text_.size()) refuse("a quote that is not closed");
    ++at_;
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::shared_ptr<const Rewrite> rewrite_;
};

}  // namespace

Expression::Expression(std::string_view text, std::shared_ptr<const Rewrite> rewrite) : evaluate_(Parser(text, std::move(rewrite)).run()) {}

}  // namespace hlat
