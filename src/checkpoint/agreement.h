// What the ranks of a mesh find out each for itself and must know together. A rank that cannot read a file must not leave the others
// waiting in the next collective: local work is done through together(), which ends alike on all ranks. Values go round over the host,
// axis by axis; everything here is collective over the mesh.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parallel/mesh.h"

namespace hlat {

// The lines of all ranks, each once, those of lower ranks first: the same on every rank.
std::vector<std::string> union_over(const Mesh& mesh, const std::vector<std::string>& lines);

// Does this rank's part of a work that has no collectives. When any rank fails, all throw an error with the same text, which names the
// ranks that failed and why: UsageError, else DamagedCheckpoint, else MissingBytes, else FaultError, by what there was. An error of
// another kind is thrown as it is where it came up, and as an Error elsewhere.
void together(const Mesh& mesh, const std::function<void()>& work);

}  // namespace hlat
