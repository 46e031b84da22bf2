// What tasks there are, and what one of them is.
#pragma once

#include "cli/eval_args.h"

namespace hlat {

void list_tasks(const EvalArgs& args);  // with sizes and missing data, where a data folder is given
void show_task(const EvalArgs& args);   // args.show: its definition, and its first example where its data is there

}  // namespace hlat
