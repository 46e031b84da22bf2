// Where the index of a data file is: in a folder .hlat beside the data, else, where that cannot be written, in the user's cache
// ($XDG_CACHE_HOME/hlat or ~/.cache/hlat), or in the folder that is asked for. Found there, or made there.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "data/reader/index_writer.h"

namespace hlat::reader {

// Loads the index, or makes it with `scan`. Error when it can be written nowhere, and instead of a scan where options.verified says that
// there is an index already.
std::unique_ptr<Index> find_or_make_index(const std::string& data_path, const IndexKey& key, const ReaderOptions& options,
                                          const std::function<void(IndexWriter&)>& scan);

}  // namespace hlat::reader
