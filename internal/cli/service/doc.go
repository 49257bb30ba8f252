// SPDX-License-Identifier: Apache-2.0

// Package service has a server or an agent started by this machine's service manager: as a unit of systemd, or, where there is no
// systemd, by a script in /etc/init.d.
//
// [Service] says what is to be started; its Unit and Script are the texts. A [Host] is the machine: Install writes the one that fits and
// starts it, Remove takes it away. Its law: the texts are pure, only files with our mark are replaced or removed, and the pods of a server
// that is stopped run on, however it is stopped.
package service
