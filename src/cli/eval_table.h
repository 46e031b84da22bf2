// Tables of evaluations: one model by groups and tasks, or a line for each of several models. Shares in percent.
#pragma once

#include <string>
#include <vector>

#include "eval/results.h"

namespace hlat {

std::string number_text(double value, bool share);  // "41.3", "23.870"; empty: not known
std::string value_text(const MetricResult& metric);
std::string error_text(const MetricResult& metric);  // empty: not known

// "100", or "100 of 1838" where a limit left the others out.
std::string examples_text(const NamedMetrics& numbers);

// The paper's table: groups with their tasks below them.
std::string results_text(const Results& results);

// Each model a line, each group a column, and the tasks of Code, truth and bias and LM columns of their own, as tables II and V have them.
// `before`: columns of the caller's, by model.
std::string models_text(const std::vector<Results>& models, const std::vector<std::string>& names, const std::string& alignment,
                        const std::vector<std::vector<std::string>>& before);

}  // namespace hlat
