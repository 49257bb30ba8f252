// SPDX-License-Identifier: Apache-2.0

// Package firstthread keeps a process's first thread for its main function. It is imported for its effect, by
// programs whose goroutines enter other namespaces, as libraries' do too: Go ends a thread that was left in one, but
// for the first, which cannot end. It would stay as it is, unused, and what the kernel shows of the process as a whole
// (/proc/net, /proc/self/ns, /proc/self/mountinfo) is what its first thread sees: some pod's network in place of the
// machine's. Its law: nothing but main ever runs on the first thread.
//
// What main does itself is slow there, so it has all done by [Beside].
package firstthread
