// SPDX-License-Identifier: Apache-2.0

// Package systemlogs answers the kubelet's node log query: /logs/?query=kubelet&tailLines=100, as kubectl and other
// tools ask it, from the machine's journal where there is one and from files below /var/log; and these files by their
// paths, at /logs/, as a kubelet has them (PL-36).
//
// Parse reads the question, in the kubelet's words where it makes no sense; Handler answers it.
//
// Its law: a question names services or one file, never a command: what comes from it reaches journalctl only as the
// value of an option, and no file outside the folder is opened, also not through links.
package systemlogs
