#include "data/batch_documents.h"

namespace hlat {

BatchDocuments documents_of(const Mixture& mixture, int64_t lanes, int64_t seq_len, int64_t first_lane,
                            const std::vector<LaneState>& states, size_t most) {
  BatchDocuments found;
  Lanes reading(mixture, lanes, seq_len);
  Readers readers(mixture);
  std::vector<int32_t> row(static_cast<size_t>(seq_len + 1));
  for (size_t i = 0; i < states.size(); ++i) {
    const int64_t lane = first_lane + static_cast<int64_t>(i);
    std::vector<RowPart> parts;
    reading.restore(lane, states[i]);
    reading.read_row(lane, readers, row.data(), &parts);
    const RowPart* last = nullptr;
    for (const RowPart& p : parts) {
      // Pieces of one document are one stretch; a document that comes again begins anew.
      const bool goes_on = last != nullptr && last->document == p.document && !p.starts;
      last = &p;
      if (!goes_on) ++found.count;
      if (goes_on && found.count <= most) found.first.back().tokens += p.count;
      if (goes_on || found.count > most) continue;
      const DocumentPlace at = mixture.sources[p.source]->place_of(p.document);
      found.first.push_back({.row = lane,
                             .source = mixture.names[p.source],
                             .file = at.file,
                             .document = at.number,
                             .byte = p.piece,
                             .token = p.offset,
                             .tokens = p.count});
    }
  }
  return found;
}

}  // namespace hlat
