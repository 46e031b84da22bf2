#include "report/page_parts.h"

namespace hlat {

std::string page_file(std::string_view name) {
  std::string text;
  for (const PagePart& part : page_parts())
    if (part.name == name) text += part.text;
  return text;
}

}  // namespace hlat
