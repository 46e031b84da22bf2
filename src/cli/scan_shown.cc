#include "cli/scan_shown.h"

#include <unistd.h>

#include <iostream>

#include "record/progress.h"
#include "record/scan_line.h"

namespace hlat {

ScanObserver shown_on_stderr() {
  const ProgressOptions terminal = progress_options(STDERR_FILENO, 0);
  const auto line = std::make_shared<ScanLine>(std::cerr, terminal.live, terminal.now);
  return [line](const ScanProgress& p) { line->show(p.source, p.files, p.all_files, p.bytes, p.all_bytes); };
}

}  // namespace hlat
