#include "task/rewrite.h"

#include "base/error.h"

namespace hlat {

void Rewrite::add(const std::string& pattern, const std::string& with) {
  Step step{Pattern(pattern), {}};
  std::string text;
  for (size_t i = 0; i < with.size(); ++i) {
    if (with[i] != '\\') {
      text += with[i];
      continue;
    }
    const char next = i + 1 < with.size() ? with[++i] : ' ';
    if (next == '\\') {
      text += next;
    } else if (next >= '1' && next <= '9' && static_cast<size_t>(next - '0') <= step.pattern.groups()) {
      step.with.push_back({std::move(text), static_cast<size_t>(next - '0')});
      text.clear();
    } else {
      fail("replacement '{}' of pattern '{}': a \\ goes before another \\ or the number of a group, of which there are {}", with, pattern,
           step.pattern.groups());
    }
  }
  step.with.push_back({std::move(text), 0});
  steps_.push_back(std::move(step));
}

std::string Rewrite::apply(const Step& step, std::string_view text) {
  Pattern::Search search(step.pattern, Pattern::Search::Captures::kept);
  std::string out;
  size_t done = 0;
  Pattern::Range match{};
  for (size_t from = 0; from <= text.size() && search.find(text, from, match); from = Pattern::after(text, match)) {
    out.append(text, done, match.begin - done);
    for (const Piece& piece : step.with) {
      out += piece.text;
      const auto group = piece.group > 0 ? search.group(piece.group) : std::nullopt;
      if (group) out.append(text, group->begin, group->end - group->begin);
    }
    done = match.end;
  }
  return out.append(text, done);
}

std::string Rewrite::operator()(std::string_view text) const {
  std::string out(text);
  for (const Step& step : steps_) out = apply(step, out);
  return out;
}

}  // namespace hlat
