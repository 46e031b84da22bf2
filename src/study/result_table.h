// Results of a study for people: a table as text or as Markdown, and curves as SVG. All read StudyResults alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/results.h"

namespace hlat {

// collect: columns by their key; empty: those in which some row has a value.
std::vector<std::vector<std::string>> results_cells(const StudyResults& results, const std::vector<std::string>& collect);  // heads first
// The numbers behind the cells of each row: means, largest values, counts of runs, divergences and alarms; none where there is none, as
// behind names.
std::vector<std::vector<std::optional<double>>> results_values(const StudyResults& results, const std::vector<std::string>& collect);
std::string results_table(const StudyResults& results, const std::vector<std::string>& collect);
std::string results_markdown(const StudyResults& results, const std::vector<std::string>& collect);

// Means over the seeds of each row against the tokens, in up to 200 parts of the run, with the range over the seeds as a band. Losses above
// the largest that a row has after 2 % of its tokens are left out, so that the ends of the curves can be told apart.
std::string loss_svg(const StudyResults& results);
std::string grad_norm_svg(const StudyResults& results);

// results.json, results.md, loss.svg and grad_norm.svg.
void write_results(const std::filesystem::path& folder, const StudyResults& results, const std::vector<std::string>& collect);

}  // namespace hlat
