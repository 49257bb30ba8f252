// SPDX-License-Identifier: Apache-2.0

// Package terminal is what the shell's line editor, the pager and vi need of a terminal: raw mode, keys, its size, and
// how much room text takes. Its law: no byte is read before a key is asked for, and none beyond it.
package terminal
