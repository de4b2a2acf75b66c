#include "report/page/page.h"

// The assembler reads the file itself: as a C++ array a megabyte would take long to compile.
__asm__(
    ".section .rodata\n"
    ".balign 16\n"
    "deeptail_report_page_start:\n"
    ".incbin \"" DEEPTAIL_PAGE_FILE
    "\"\n"
    "deeptail_report_page_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char deeptail_report_page_start[], deeptail_report_page_end[];
}

namespace deeptail {

std::string_view report_page() { return {deeptail_report_page_start, deeptail_report_page_end}; }

}  // namespace deeptail
