// A text with {{ expressions }} in it, filled from the fields of a record.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "task/expression.h"

namespace hlat {

class Template {
 public:
  Template() = default;                                                            // the empty text
  Template(std::string_view text, const std::shared_ptr<const Rewrite>& rewrite);  // Error: what is wrong with it

  std::string text(const Fields& fields) const;
  // Of a template that is one expression and nothing else its value, whatever its kind; else the text.
  Json value(const Fields& fields) const;
  bool given() const { return !pieces_.empty(); }

 private:
  struct Piece {
    std::string text;
    std::optional<Expression> then;
  };
  std::vector<Piece> pieces_;
};

// Several texts of a record: a template for each, or one template whose value is a list.
class TemplateList {
 public:
  TemplateList() = default;  // no texts
  explicit TemplateList(Template list) : items_{std::move(list)}, one_is_all_(true) {}
  explicit TemplateList(std::vector<Template> items) : items_(std::move(items)) {}

  bool given() const { return !items_.empty(); }
  std::vector<std::string> texts(const Fields& fields) const;

 private:
  std::vector<Template> items_;
  bool one_is_all_ = false;
};

}  // namespace hlat
