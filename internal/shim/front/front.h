// SPDX-License-Identifier: Apache-2.0

#define BEHIND "wherry-shim" // the program behind this one

void die(const char *what) __attribute__((noreturn));
void behind(char **argv) __attribute__((noreturn));
int start(int argc, char **argv);
int hold(void);
