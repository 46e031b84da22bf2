// Token files of Megatron-LM. The .bin holds token ids one after the other; the .idx says where sequences and documents are:
//   "MMIDIDX\0\0" | u64 version 1 | u8 type of ids | u64 sequences S | u64 length D of the document list
//   | i32 tokens of each sequence [S] | i64 byte offset of each [S] | i64 first sequence of each document, and S at the end [D]
// A document is its sequences joined. All little endian. What newer versions append is not read.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hlat::reader {

// Codes of the types of ids that are whole numbers.
enum class TokenType : uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, u16 = 8 };

size_t token_bytes(TokenType type);  // 0 for a code that is none of these
// Appends ids; false, with the offending one in `bad`, when one is negative or has more than 31 bits.
bool widen_tokens(TokenType type, std::string_view bytes, std::vector<int32_t>& out, int64_t& bad);
uint64_t hash_tokens(const std::vector<int32_t>& tokens);  // whatever type they are stored with

}  // namespace hlat::reader
