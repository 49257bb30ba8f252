// SPDX-License-Identifier: Apache-2.0

// Package service lets this machine's service manager start a server or an agent: with a systemd unit or, where there
// is no systemd, with a script in /etc/init.d.
//
// [Service] says what to start; its Unit and Script are the texts. A [Host] is the machine: Install writes the one that
// fits and starts it, Remove removes it. Its law: the texts are pure, only files with our mark are replaced or removed,
// and when a server is stopped, in whatever way, its pods keep running.
package service
