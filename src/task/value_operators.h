// What the operators of expressions do to values (expression.h). Errors name values of the wrong kind and fields that are not there.
#pragma once

#include <string>
#include <string_view>

#include "task/expression.h"

namespace hlat {

Json look_up(const Fields& fields, const std::string& name);
Json member(const Json& value, const std::string& name);           // value.name
Json item(const Json& value, const Json& index);                   // value[index]; negative: from the end
Json part(const Json& value, const Json& begin, const Json& end);  // value[begin:end], of lists and of the characters of texts
Json sum(const Json& a, const Json& b);                            // of whole numbers, of lists, or of texts
Json difference(const Json& a, const Json& b);
bool truth(const Json& value);  // as Python has it: 0 and what is empty are false
bool compared(std::string_view how, const Json& a, const Json& b);

}  // namespace hlat
