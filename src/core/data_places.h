// Where models, distributions and other shipped files are looked for by name.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace deeptail {

// $DEEPTAIL_HOME/kind, ./kind, beside the program (../kind, ../share/deeptail/kind), and the folders given to
// add_data_folder, in this order.
std::vector<std::filesystem::path> data_places(std::string_view kind);

}  // namespace deeptail
