// SPDX-License-Identifier: Apache-2.0
//
// The first instructions of bin/wherry. `wherry debug` and `wherry exec` begin in the short program, which starts in a tenth of the time,
// and so do the resolver of names, the guard of a debug session and a cluster's agent, which take a tenth of the memory; everything else
// begins in the main one, and so does what the short program has handed over: it begins the file once more with WHERRY_HANDED_OVER in its
// environment. The stack and the registers that the kernel gave are left as they were.

// Where the main program begins, and where the short one does: tools/elfjoin fills it in, so the compiler must not know it.
extern const unsigned long programs[2];
__asm__(".section .rodata\n.balign 8\n.globl programs\n.type programs, %object\n.size programs, 16\nprograms: .quad 0, 0\n.text\n");

static int same(const char *a, const char *b) {
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static int begins(const char *text, const char *with) {
	while (*with && *text == *with) {
		text++;
		with++;
	}
	return !*with;
}

// The stack of a new program: the number of arguments, the arguments, 0, the environment, 0.
__attribute__((used)) unsigned long choose(const long *stack) {
	long count = stack[0];
	const char *const *args = (const char *const *)(stack + 1);
	if (count >= 2 && same(args[1], "cluster-agent"))
		return programs[1];
	if (count < 3 || (!same(args[1], "debug") && !same(args[1], "exec") && !same(args[1], "resolve-names") &&
			  !same(args[1], "guard-debug-session")))
		return programs[0];
	for (const char *const *env = args + count + 1; *env; env++)
		if (begins(*env, "WHERRY_HANDED_OVER="))
			return programs[0];
	return programs[1];
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tcall choose\n\txor %edx, %edx\n\tjmp *%rax\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x0, sp\n\tbl choose\n\tmov x16, x0\n\tmov x0, #0\n\tbr x16\n");
#else
#error "no entry for this machine: build cmd/wherry alone"
#endif
