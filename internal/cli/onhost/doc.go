// SPDX-License-Identifier: Apache-2.0

// Package onhost has what the commands do with a target that is a container, a process or a unit of this machine (DA-01
// to DA-03, DA-13), where no server is asked: [Flags.Debug] and [Flags.Exec] run a debugger, [Flags.Copier] what a copy
// needs, [NewPs] lists what can be debugged.
//
// Its law: the same words mean the same as with a pod, and what means nothing here is refused with a reason.
package onhost
