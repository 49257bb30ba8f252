// SPDX-License-Identifier: Apache-2.0

// Package kernellog reads the messages of this machine's kernel: [Read] all that it still has, [OutOfMemory] what they
// say of control groups that ran out of memory: who was killed and who used what.
//
// Its law: it changes nothing, also not what others read of the messages; a message that makes no sense is left out.
package kernellog
