// The subcommands of `hlat ckpt`, one function and file each.
#pragma once

#include <CLI/CLI.hpp>

namespace hlat {

void add_ckpt_ls(CLI::App& ckpt);
void add_ckpt_inspect(CLI::App& ckpt);
void add_ckpt_verify(CLI::App& ckpt);
void add_ckpt_diff(CLI::App& ckpt);
void add_ckpt_average(CLI::App& ckpt);
void add_ckpt_prune(CLI::App& ckpt);
void add_ckpt_import(CLI::App& ckpt);
void add_ckpt_export(CLI::App& ckpt);

}  // namespace hlat
