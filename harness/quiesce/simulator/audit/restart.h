// Begins the program again without this module.
#pragma once

// Does not return, unless the system refuses. Nothing of the program may have run yet.
void restart_without_audit(const char *program);
