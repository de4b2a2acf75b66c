// Standard input, output and error of the process.
#pragma once

namespace deeptail::cli {

// Those that were closed become /dev/null, so that no file of ours gets their numbers, and a file that may
// not grow becomes an error like any other. First thing in main.
void prepare_streams();

// Writes what is left of standard output. Throws std::system_error, as fmt::print does, where something could
// not be written.
void flush_output();

}  // namespace deeptail::cli
