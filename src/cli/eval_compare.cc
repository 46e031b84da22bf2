#include "cli/eval_compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.h"
#include "cli/compare_table.h"
#include "cli/eval_table.h"
#include "cli/print.h"
#include "eval/published.h"
#include "eval/results_file.h"

namespace hlat {

namespace {

namespace fs = std::filesystem;

struct NamedSource {
  Results results;
  std::string word;  // that the user gave for it
};

std::vector<NamedSource> load_models(const std::vector<std::string>& words) {
  constexpr std::string_view kPublished = "published";
  std::vector<NamedSource> models;
  for (const std::string& word : words) {
    if (word == kPublished)
      for (Results& r : published_results()) models.push_back({std::move(r), word});
    else if (word.starts_with(std::string(kPublished) + ":"))
      models.push_back({published_result(word.substr(kPublished.size() + 1)), word});
    else
      models.push_back({load_results(word), word});
    if (models.back().results.tasks.empty()) fail<UsageError>("{}: has results of no task", word);
  }
  if (models.size() < 2) throw UsageError("--compare needs two models: files of results, published, or published:NAME");
  return models;
}

// "c1" of runs/c1/ and of runs/c1/results.json.
std::string last_name(const std::string& word) {
  fs::path path = fs::path(word).lexically_normal();
  if (!path.has_filename() || path.filename() == kResultsName) path = path.parent_path();
  return path.has_filename() ? path.filename().string() : word;
}

bool clashes(const std::vector<std::string>& names, size_t at) { return std::count(names.begin(), names.end(), names[at]) > 1; }

// Evaluations of one model are told apart by their folders' names, or else by all of what the user gave.
std::vector<Results> with_own_names(std::vector<NamedSource> models) {
  std::vector<std::string> names, longer;
  for (const NamedSource& m : models) names.push_back(m.results.model);
  for (size_t i = 0; i < models.size(); ++i)
    longer.push_back(clashes(names, i) ? fmt::format("{} ({})", names[i], last_name(models[i].word)) : names[i]);
  std::vector<Results> all;
  for (size_t i = 0; i < models.size(); ++i) {
    models[i].results.model = clashes(longer, i) ? fmt::format("{} ({})", names[i], models[i].word) : longer[i];
    all.push_back(std::move(models[i].results));
  }
  return all;
}

}  // namespace

void compare_models(const EvalArgs& args) {
  constexpr size_t kSideBySide = 4;  // more do not fit beside each other
  const std::vector<Results> models = with_own_names(load_models(args.compare));
  const Comparison comparison = compare(models);
  if (args.json) return print_out(json_text(comparison_json(comparison), 2) + "\n");
  std::vector<std::vector<std::string>> names;
  for (const Results& r : models) names.push_back({r.model});
  const std::string table = models_text(models, {"model"}, "l", names) + "\n";
  print_out(table + (models.size() <= kSideBySide ? comparison_text(comparison) : summary_text(comparison)));
}

}  // namespace hlat
