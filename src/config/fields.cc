#include "config/fields.h"

namespace hlat {

std::vector<Field> all_fields(Config& c) {
  std::vector<Field> list;
  const auto visit_section = [&](std::string_view section, auto& part, std::string_view) {
    const auto visit_field = [&](std::string_view name, auto& member, std::string_view help, Limits limits) {
      list.push_back({section, name, help, std::move(limits), &member});
    };
    fields(visit_field, part);
  };
  sections(visit_section, c);
  return list;
}

std::vector<Section> all_sections() {
  std::vector<Section> list;
  Config any;
  const auto visit = [&](std::string_view name, auto&, std::string_view help) { list.push_back({name, help}); };
  sections(visit, any);
  return list;
}

}  // namespace hlat
