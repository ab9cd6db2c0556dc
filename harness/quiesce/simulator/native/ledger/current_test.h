// The test that runs, where the program is pytest: it names the test in an environment variable, which this process
// or one above it has set.
#pragma once

// NULL: no test runs. The text stays until the machine is closed.
const char *current_test(void);
void current_test_close(void);
