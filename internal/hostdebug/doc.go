// SPDX-License-Identifier: Apache-2.0

// Package hostdebug debugs what runs on this machine without a server: containers of Docker, podman,
// containerd and other CRI runtimes, processes, units of systemd (DA-01 to DA-04, DA-08, DA-09, DA-13).
//
//	target   what a word such as docker:web means
//	engines  asks an engine what only it knows: the process of a name, and where a dead container's files are
//	ocispec  the debugger as an OCI runtime specification, pure
//	session  makes it, joins it, and takes it away
//
// Its law: nothing of the target is changed, its engine is only asked, and nothing is left on the machine.
package hostdebug
