// A Python interpreter in the same process: what it holds has to be looked for before it takes itself down.
#pragma once

// Where there is an interpreter, lets it call `exits` when it begins to exit.
void interpreter_watch(void (*exits)(void));
