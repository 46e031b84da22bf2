#include "task/template.h"

#include "base/error.h"

namespace hlat {
namespace {

// Where the expression that begins at `from` ends: at the next }} that is not inside a quoted text.
size_t end_of_expression(std::string_view text, size_t from) {
  char quote = 0;
  for (size_t i = from; i < text.size(); ++i) {
    if (quote != 0 && text[i] == '\\') {
      ++i;
    } else if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '\'' || text[i] == '"') {
      quote = text[i];
    } else if (text.substr(i).starts_with("}}")) {
      return i;
    }
  }
  fail("'{{{{' without '}}}}' in '{}'", text);
}

}  // namespace

Template::Template(std::string_view text, const std::shared_ptr<const Rewrite>& rewrite) {
  size_t done = 0;
  for (size_t open = text.find("{{"); open != std::string_view::npos; open = text.find("{{", done)) {
    const size_t close = end_of_expression(text, open + 2);
    pieces_.push_back({std::string(text.substr(done, open - done)), Expression(text.substr(open + 2, close - open - 2), rewrite)});
    done = close + 2;
  }
  if (done < text.size()) pieces_.push_back({std::string(text.substr(done)), std::nullopt});
}

std::string Template::text(const Fields& fields) const {
  std::string out;
  for (const Piece& piece : pieces_) {
    out += piece.text;
    if (piece.then) out += text_of((*piece.then)(fields));
  }
  return out;
}

Json Template::value(const Fields& fields) const {
  if (pieces_.size() == 1 && pieces_[0].text.empty() && pieces_[0].then) return (*pieces_[0].then)(fields);
  return text(fields);
}

std::vector<std::string> TemplateList::texts(const Fields& fields) const {
  std::vector<std::string> out;
  if (!one_is_all_) {
    for (const Template& item : items_) out.push_back(item.text(fields));
    return out;
  }
  const Json found = items_[0].value(fields);
  if (!found.is_array()) return {text_of(found)};
  for (const Json& item : found) out.push_back(text_of(item));
  return out;
}

}  // namespace hlat
