// The parts that task files are made of: templates, patterns, replacements and sources of records. What is wrong with one becomes a problem
// at its key, and an empty one is returned.
#pragma once

#include <memory>
#include <string>

#include "task/data_source.h"
#include "task/rewrite.h"
#include "task/template.h"
#include "task/yaml_map.h"

namespace hlat {

using SharedRewrite = std::shared_ptr<const Rewrite>;

Template read_template(YamlMap& yaml, const std::string& key, const SharedRewrite& rewrite);
TemplateList read_templates(YamlMap& yaml, const std::string& key, const SharedRewrite& rewrite);
std::shared_ptr<const Pattern> read_pattern(YamlMap& yaml, const std::string& key);  // null where it is absent
Rewrite read_rewrite(YamlMap& yaml, const std::string& key);                         // a list of [pattern, replacement]
Rewrite read_ignored(YamlMap& yaml, const std::string& key);                         // patterns that are replaced by nothing

// What `out` holds already are the fallbacks, but for its files, labels and `where`: few-shot files are written like the data.
void read_source(YamlMap yaml, const SharedRewrite& rewrite, DataSource& out);

}  // namespace hlat
