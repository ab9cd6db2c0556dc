// Gives variables first values that only the compiler can tell (code/initial.h).
#pragma once

void initials_close(void);
