// Tells on stderr how far the scan of data files is.
#pragma once

#include "data/reader/open_all.h"

namespace hlat {

// To be given to a Dataset that is opened.
ScanObserver shown_on_stderr();

}  // namespace hlat
