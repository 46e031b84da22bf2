// Expressions of task templates over the fields of a record, in the manner of Jinja:
//   question.choices[0]   text[1:-1]   'a' + b   answer | index_of(['A', 'B'])   ' because' if question == 'cause' else ' so'
// Literals are texts in either quote, whole numbers, true, false and lists; operators are + - == != < <= > >= and or not, `x if c else y`
// and | for functions (functions.h). No loops, no assignments.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "task/functions.h"

namespace hlat {

// Where names are looked up: in the record, then among what all records of a subtask share.
struct Fields {
  const Json& record;
  const Json* shared = nullptr;
};

class Expression {
 public:
  // Error: what is wrong, and where. `rewrite` is what the function of that name does.
  Expression(std::string_view text, std::shared_ptr<const Rewrite> rewrite);
  // Error: a field that is not there, a value of the wrong kind.
  Json operator()(const Fields& fields) const { return evaluate_(fields); }

  using Evaluate = std::function<Json(const Fields&)>;

 private:
  Evaluate evaluate_;
};

}  // namespace hlat
