#include "config/fields.h"

#include "base/error.h"

namespace hlat {
namespace {

struct Collector {
  std::vector<Field>& list;
  std::string_view section;
  std::string item = {};

  template <class T>
  void operator()(std::string_view name, T& member, std::string_view help, Limits limits) {
    list.push_back({section, item, name, help, std::move(limits), &member});
    if constexpr (kIsItemList<T>) {
      for (size_t i = 0; i < member.size(); ++i) {
        Collector inner{list, section, fmt::format("{}[{}]", name, i)};
        fields(inner, member[i]);
      }
    }
  }
};

}  // namespace

std::vector<Field> all_fields(Config& c) {
  std::vector<Field> list;
  const auto visit_section = [&](std::string_view section, auto& part, std::string_view) {
    Collector collect{list, section};
    fields(collect, part);
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

bool is_item_list(const Field& f) {
  return std::visit([](const auto* v) { return kIsItemList<std::decay_t<decltype(*v)>>; }, f.value);
}

void resize_items(const Field& f, size_t size) {
  const auto resize = [&](auto* v) {
    if constexpr (kIsItemList<std::decay_t<decltype(*v)>>)
      v->resize(size);
    else
      HLAT_CHECK(false, "{} is no list of items", f.key());
  };
  std::visit(resize, f.value);
}

size_t items(const Field& f) {
  const auto count = [](const auto* v) -> size_t {
    if constexpr (kIsItemList<std::decay_t<decltype(*v)>>) return v->size();
    return 0;
  };
  return std::visit(count, f.value);
}

Config with_items(size_t size) {
  Config c;
  for (const Field& f : all_fields(c))
    if (is_item_list(f)) resize_items(f, size);
  return c;
}

}  // namespace hlat
